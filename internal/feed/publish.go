package feed

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/serviceconfig"

	"github.com/understudy-lb/understudy/hierarchy"
	"github.com/understudy-lb/understudy/internal/printable"
	"github.com/understudy-lb/understudy/internal/svcconfig"
	"github.com/understudy-lb/understudy/topology"
)

// message is one thing to tell the channel.
type message struct {
	action action
	trees  []topology.Tree    // for send
	about  *hierarchy.Channel // likewise
	err    error              // for report
}

// publish tells the channel what changed. Where another goroutine is at it, that
// one sends this too, and publish returns at once; so answers that arrive while the
// channel takes one become one update. It returns the channel's error where the source
// of caller, which may be nil, should try again.
func (f *Feed) publish(caller *slot) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.publishing || !f.started || f.starting > 0 {
		return nil
	}
	f.publishing = true
	var verdict error
	for f.changed && !f.closed {
		f.changed = false
		m := f.message()
		f.mu.Unlock()
		err := f.deliver(m)
		f.mu.Lock()
		verdict = f.settle(caller, err)
	}
	f.publishing = false
	return verdict
}

// message returns what to tell the channel now. The lock is held.
func (f *Feed) message() message {
	slots := f.inUse()
	f.progress.phases = nil
	for _, s := range slots {
		f.progress.phases = append(f.progress.phases, s.phaseOf())
	}
	m := message{action: f.progress.next()}
	switch m.action {
	case send:
		f.progress.sent = true
		f.list(&m, slots)
	case report:
		m.err = f.whyNone(slots)
	case wait:
	}
	return m
}

// list puts the priorities of the mechanisms that have answered or failed into m.
func (f *Feed) list(m *message, slots []*slot) {
	f.children = make(map[string]*slot)
	var empty []string // why the trees have no priorities, if none has
	m.about = &hierarchy.Channel{Target: f.config.Target, Names: make(map[string]string), Services: make(map[string]string), Failures: make(map[string]string), Logger: f.config.Logger, Live: f.live}
	for _, s := range slots {
		phase := s.phaseOf()
		if phase == outstanding {
			continue
		}
		tree := s.tree
		if s.resolves() {
			tree = tree.Reresolving()
		}
		if s.OutlierDetection != nil {
			tree = tree.WithOutlierDetection(s.OutlierDetection)
		}
		m.trees = append(m.trees, tree)
		if s.Name != "" {
			empty = append(empty, s.Name+": "+tree.Empty)
		} else {
			empty = append(empty, tree.Empty)
		}
		for n, p := range tree.Priorities() {
			f.children[p.Child] = s
			m.about.Names[p.Child] = s.nameOf(n, p.Name)
			if p.Cluster != "" {
				m.about.Services[p.Child] = p.Cluster
			}
			if phase == failed {
				m.about.Failures[p.Child] = f.line(s, s.err.Error())
			}
		}
	}
	if len(f.children) == 0 {
		m.about.Empty = printable.Text(f.config.Target + ": " + strings.Join(empty, "; "))
	}
}

// nameOf returns what people call priority n of the mechanism, whose tree calls it
// title.
func (s *slot) nameOf(n int, title string) string {
	if s.Name == "" && title == topology.LocalityName(nil) {
		return "" // its number says as much
	}
	if title == topology.LocalityName(nil) || title == "" {
		title = fmt.Sprintf("priority %d", n)
	}
	if s.Name == "" || title == s.Name {
		return title
	}
	return s.Name + ": " + title
}

// deliver calls the channel. The lock is not held.
func (f *Feed) deliver(m message) error {
	switch m.action {
	case send:
		tree := topology.Join(f.config.Settings, m.trees...)
		state := resolver.State{Endpoints: tree.Endpoints, ServiceConfig: f.parse(tree)}
		state = hierarchy.SetChannel(hierarchy.SetResolveNow(state, f.resolveChild), m.about)
		size := printable.Count(len(tree.Endpoints), "endpoint", "endpoints") + " in " + printable.Count(len(m.about.Names), "priority", "priorities")
		logger.Infof("%s: %s: %s", f.config.Scheme, f.config.Target, size)
		if f.live != nil {
			f.live.Note("update: " + size)
		}
		return f.cc.UpdateState(hierarchy.Seal(state))
	case report:
		f.cc.ReportError(m.err)
	case wait:
	}
	return nil
}

// settle takes note of err, the channel's to an update, and returns it where the source of
// caller should try again. The other sources cannot be told, since their answers were
// taken earlier: they are asked to look again, once until an update succeeds. Where a
// mechanism without addresses explains the error, only its source can help, and that
// knows already. The lock is held.
func (f *Feed) settle(caller *slot, err error) error {
	f.refused = false
	slots := f.inUse()
	if err == nil {
		for _, s := range slots {
			s.told = false
		}
		return nil
	}
	if slices.ContainsFunc(slots, func(s *slot) bool { return s.phaseOf() == failed }) {
		return nil
	}
	f.refused = true
	// Policies report a priority without endpoints themselves: it is no reason to refuse the rest.
	if !errors.Is(err, balancer.ErrBadResolverState) {
		logger.Warningf("%s: %s: the channel does not take the endpoints: %v", f.config.Scheme, f.config.Target, err)
	}
	for _, s := range slots {
		if s.phaseOf() == answered && s != caller && !s.told {
			f.ask(s)
		}
		s.told = true
	}
	return err
}

// parse returns the service config that the channel is sent with tree. It is parsed
// anew only if it changes.
func (f *Feed) parse(tree topology.Tree) *serviceconfig.ParseResult {
	json, err := svcconfig.Merge(f.config.ServiceConfig, tree.Config)
	if err != nil {
		return &serviceconfig.ParseResult{Err: err}
	}
	if f.parsed == nil || f.json != json {
		f.json, f.parsed = json, f.cc.ParseServiceConfig(json)
	}
	return f.parsed
}

// checkServiceConfig returns an error where no update could be taken, because of a
// mistake in the user's service config.
func (f *Feed) checkServiceConfig() error {
	if err := svcconfig.Check(f.config.ServiceConfig); err != nil {
		return err
	}
	if parsed := f.parse(topology.Join(f.config.Settings)); parsed != nil && parsed.Err != nil {
		return fmt.Errorf("service config: %w", parsed.Err)
	}
	return nil
}

// whyNone returns an error that says in one line why there is no endpoint. It wraps
// nothing: a status would end calls that wait for ready.
func (f *Feed) whyNone(slots []*slot) error {
	const most = 4 // causes that are worth reading
	if len(slots) == 1 && len(f.slots) == 1 && f.slots[0].Name == "" {
		return errors.New(f.line(slots[0], slots[0].err.Error()))
	}
	var causes []string
	for i, s := range slots {
		switch {
		case i >= most:
		case s.err != nil:
			causes = append(causes, fmt.Sprintf("%s: %v", s.Name, s.err))
		default:
			causes = append(causes, fmt.Sprintf("%s: no answer yet", s.Name))
		}
	}
	text := f.config.Scheme + ": no part has an address: " + strings.Join(causes, "; ")
	if more := len(slots) - most; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return errors.New(printable.Text(text))
}

// line returns text about a mechanism as an error or a line of the log. Names of clusters are
// from outside, and could otherwise add lines of their own.
func (f *Feed) line(s *slot, text string) string {
	prefix := f.config.Scheme + ": "
	if s.Name != "" {
		return printable.Text(prefix + s.Name + ": " + text)
	}
	return printable.Text(prefix + strings.TrimPrefix(text, prefix))
}
