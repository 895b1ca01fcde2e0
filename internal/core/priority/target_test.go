package priority_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	core "github.com/understudy-lb/understudy/internal/core/priority"
	scenario "github.com/understudy-lb/understudy/internal/testing/priorityscenario"
)

type target struct {
	core             *core.Core
	children         map[string]*fakeChild
	script           map[string][]scenario.Reaction
	update           scenario.Update
	errors           []string
	standbyRequested bool
	inChildUpdate    bool

	now    time.Duration
	timers []*fakeTimer

	lines  []string
	failed bool
	closed bool

	inUpdate bool
	observe  func(core.Action)
}

type fakeChild struct {
	updated  bool
	reported *scenario.Report
	lastErr  error
	refused  bool
}

type fakeTimer struct {
	kind     core.Kind
	child    string
	deadline time.Duration
}

func newTarget() *target {
	return &target{core: core.New(), children: map[string]*fakeChild{}}
}

func (t *target) write(format string, args ...any) {
	t.lines = append(t.lines, strings.TrimSpace(fmt.Sprintf(format, args...)))
}

func (t *target) Script(s map[string][]scenario.Reaction) { t.script = s }

func (t *target) Update(u scenario.Update) {
	if t.closed {
		return
	}
	t.errors = nil
	t.update, t.inUpdate = u, true
	t.execute(t.core.BeginUpdate(u.Config))
	t.inUpdate = false
	t.execute(t.core.EndUpdate())
	t.createStandbys()
	if !t.failed {
		return
	}
	if len(t.errors) > 1 {
		t.write("error: %s (and %d more)", t.errors[0], len(t.errors)-1)
	} else if len(t.errors) > 0 {
		t.write("error: %s", t.errors[0])
	}
}

func (t *target) Report(child string, r scenario.Report) {
	c := t.children[child]
	if c == nil {
		return
	}
	c.reported, c.refused = &r, false
	if r.State == core.TransientFailure {
		c.lastErr = r.Err()
	}
	t.execute(t.core.Reported(child, r.State))
	if !t.inChildUpdate {
		t.createStandbys()
	}
}

func (t *target) createStandbys() {
	for t.standbyRequested {
		t.standbyRequested = false
		t.execute(t.core.StandbyDue())
	}
}

func (t *target) refuse(child string, err error) {
	text := fmt.Sprintf("priority: child %q refused its update: %v", child, err)
	t.errors = append(t.errors, text)
	t.children[child].lastErr = errors.New(text)
	t.children[child].refused = true
	t.execute(t.core.Refused(child))
}

func (t *target) updateChild(name string) {
	c, verb := t.children[name], "update"
	if !c.updated {
		c.updated, verb = true, "create"
	}
	var endpoints []string
	for _, e := range t.update.Endpoints {
		if len(e.Path) > 0 && e.Path[0] == name {
			endpoints = append(endpoints, fmt.Sprintf("%s%v", e.Address, e.Path[1:]))
		}
	}
	t.write("%s %s %s", verb, name, strings.Join(endpoints, " "))
	before, refused := t.inChildUpdate, c.refused
	t.inChildUpdate, c.refused = true, false
	accepted := true
	for _, r := range t.script[name] {
		if r.Err == nil {
			t.Report(name, r.Report)
			continue
		}
		t.refuse(name, r.Err)
		accepted = false
		break
	}
	if refused && accepted && c.reported != nil && c.reported.State == core.TransientFailure {
		c.lastErr = c.reported.Err() // the refusal is over, so calls get the child's own error again
	}
	t.inChildUpdate = before
	t.execute(t.core.Updated(name))
}

func (t *target) execute(actions []core.Action) {
	for _, a := range actions {
		if t.observe != nil {
			t.observe(a)
		}
		c := t.children[a.Child]
		switch a.Kind {
		case core.Create:
			t.children[a.Child] = &fakeChild{}
		case core.Update:
			t.updateChild(a.Child)
		case core.CallStandbyDue:
			t.standbyRequested = true
		case core.Destroy:
			delete(t.children, a.Child)
			t.write("destroy %s", a.Child)
		case core.ExitIdle:
			t.write("exit-idle %s", a.Child)
		case core.StartFailover, core.StartDeactivation:
			t.timers = append(t.timers, &fakeTimer{a.Kind, a.Child, t.now + a.After})
		case core.StopFailover, core.StopDeactivation:
			i := slices.IndexFunc(t.timers, func(tm *fakeTimer) bool {
				return tm.child == a.Child && tm.kind == a.Kind-1 // each stop is declared right after its start
			})
			t.timers = slices.Delete(t.timers, i, i+1)
		case core.Publish:
			t.publish(a.Child, c)
		case core.PublishRefused:
			t.fail(c.lastErr)
		case core.PublishTimeout:
			t.fail(&core.TimeoutError{Child: a.Child, After: a.After, Last: c.lastErr})
		case core.PublishEmpty:
			t.fail(core.ErrEmpty)
		}
	}
}

func (t *target) publish(name string, c *fakeChild) {
	if c.reported == nil {
		t.write("publish CONNECTING")
		t.failed = false
		return
	}
	t.write("%s", c.reported.Line(name))
	t.failed = c.reported.State == core.TransientFailure
}

func (t *target) fail(err error) {
	t.write("publish TRANSIENT_FAILURE: %v", err)
	t.failed = true
}

func (t *target) Advance(d time.Duration) {
	end := t.now + d
	for {
		i := -1
		for j, tm := range t.timers {
			if tm.deadline <= end && (i < 0 || tm.deadline < t.timers[i].deadline) {
				i = j
			}
		}
		if i < 0 {
			t.now = end
			return
		}
		tm := t.timers[i]
		t.timers = slices.Delete(t.timers, i, i+1)
		t.now = tm.deadline
		fire := map[core.Kind]func(string) []core.Action{
			core.StartFailover:     t.core.FailoverTimerFired,
			core.StartDeactivation: t.core.DeactivationTimerFired,
		}[tm.kind]
		t.execute(fire(tm.child))
		t.createStandbys()
	}
}

func (t *target) ExitIdle() {
	if name := t.core.InUse(); name != "" && !t.closed {
		t.write("exit-idle %s", name)
	}
}

func (t *target) names() []string { return slices.Sorted(maps.Keys(t.children)) }

func (t *target) ResolverError(err error) {
	for _, name := range t.names() {
		t.write("resolver-error %s %v", name, err)
	}
	if len(t.children) == 0 && !t.closed {
		t.write("publish TRANSIENT_FAILURE: priority: the resolver failed: %v", err)
	}
}

func (t *target) Resolve(child string) {
	if t.children[child] != nil && slices.Contains(t.update.Config.Children, child) && !slices.Contains(t.update.Ignore, child) {
		t.write("resolve")
	}
}

func (t *target) Close() {
	t.closed = true
	t.timers = nil
	for _, name := range t.names() {
		if t.observe != nil {
			t.observe(core.Action{Kind: core.StopDeactivation, Child: name})
		}
		t.execute([]core.Action{{Kind: core.Destroy, Child: name}})
	}
}

func (t *target) Take() []string {
	log := t.lines
	t.lines = nil
	return log
}
