package serve

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	_ "github.com/understudy-lb/understudy"                      // registers this project's targets
	_ "github.com/understudy-lb/understudy/discovery/kubernetes" // registers Kubernetes targets
	"github.com/understudy-lb/understudy/internal/channel/join"
	"github.com/understudy-lb/understudy/internal/channel/topology"
	"github.com/understudy-lb/understudy/internal/config/options"
	"github.com/understudy-lb/understudy/internal/envoy/cds"
	"github.com/understudy-lb/understudy/internal/envoy/messages"
	"github.com/understudy-lb/understudy/internal/text/printable"
)

type followedTargets struct {
	wake    func()
	log     *slog.Logger
	program options.Program

	mu   sync.Mutex
	list []*followedTarget
}

type followedTarget struct {
	name, source string // cluster name; NAME=TARGET without secrets
	stop         func()
	timer        *time.Timer

	state    join.State
	complete bool           // all mechanisms have answered or failed, or taken longer than mechanismTimeout
	cluster  *clusterConfig // nil before the first answer
	problem  error
	notes    string // which settings in the answers we ignore
}

// Before we serve a target, we give its mechanisms this long to answer. The cached cluster has the
// endpoints of all of them, so it's better to keep serving that in the meantime.
const mechanismTimeout = 15 * time.Second

func followTargets(o Options, wake func()) (*followedTargets, error) {
	sources, err := o.Kubeconfig.Sources(o.From...)
	if err != nil {
		return nil, err
	}
	f := &followedTargets{wake: wake, log: o.Log, program: options.Program{Sources: sources}}
	for _, text := range o.From {
		if err := f.start(text); err != nil {
			f.close()
			return nil, fmt.Errorf("--from: %w", err)
		}
	}
	return f, nil
}

func (f *followedTargets) start(text string) error {
	name, target, err := splitFrom(text)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(f.list, func(other *followedTarget) bool { return other.name == name }) {
		return fmt.Errorf("cluster %.100q is given twice; want another name for one of the targets, as in NAME=TARGET", name)
	}
	t := &followedTarget{name: name, source: name + "=" + printable.HideText(target)}
	stop, err := join.Follow(target, f.program, func(state join.State) {
		f.change(t, func() { t.state = state })
	})
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	t.stop, t.timer = stop, time.AfterFunc(mechanismTimeout, func() { f.change(t, func() { t.complete = true }) })
	f.list = append(f.list, t)
	return nil
}

func splitFrom(text string) (name, target string, err error) {
	// A name can't have a colon or a slash in it, but a target has one before its first "=". If
	// there's no name, we use the target's authority.
	name, target, named := strings.Cut(text, "=")
	if !named || strings.ContainsAny(name, ":/?") {
		target = text
		if name, _, err = join.Settings(target); err != nil {
			return "", "", err
		}
	}
	if problem := cds.NameProblem(name); problem != "" {
		return "", "", fmt.Errorf("%.100q: %s; want NAME=TARGET", printable.HideText(text), problem)
	}
	return name, target, nil
}

func (f *followedTargets) change(t *followedTarget, do func()) {
	f.mu.Lock()
	do()
	if notes := strings.Join(t.convert(), "; "); notes != t.notes {
		if t.notes = notes; notes != "" {
			f.log.Warn("some settings of the target are ignored", "cluster", t.name, "target", t.source, "notes", notes)
		}
	}
	f.mu.Unlock()
	f.wake()
}

// convert returns notes on anything we have to ignore: a cluster only has one set of drops, and we
// don't serve outlier detection for targets.
func (t *followedTarget) convert() (notes []string) {
	var answers []*topology.Checked
	var problems []string
	if t.state.Why != "" {
		problems = append(problems, t.state.Why)
	}
	for _, mechanism := range t.state.Mechanisms {
		if mechanism.Trouble != "" {
			problems = append(problems, strings.TrimPrefix(mechanism.Name+": ", ": ")+mechanism.Trouble)
		}
		if mechanism.Answer == nil {
			continue
		}
		if len(answers) > 0 && len(mechanism.Answer.Drops) > 0 {
			notes = append(notes, mechanism.Name+": its drops have no effect, because they are not those of the first mechanism")
		}
		if mechanism.OutlierDetection != "" {
			notes = append(notes, mechanism.Name+": its outlier_detection has no effect")
		}
		answers = append(answers, mechanism.Answer)
	}
	t.complete = t.complete || len(t.state.Waiting) == 0
	if len(answers) > 0 && t.complete {
		cluster, leftOut, err := messages.Write(t.name, answers...)
		if err == nil {
			_, _, err = messages.Read(cluster)
		}
		if err != nil {
			problems = append(problems, err.Error())
		} else {
			t.cluster = newStatic(cluster)
		}
		notes = append(notes, leftOut...)
	}
	t.problem = nil
	if len(problems) > 0 {
		t.problem = fmt.Errorf("%s: %s", t.source, strings.Join(problems, "; "))
	}
	return notes
}

func (f *followedTargets) read() (all []reading) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, t := range f.list {
		all = append(all, reading{source: t.source, clusters: map[string]*clusterConfig{t.name: t.cluster}, problem: t.problem})
	}
	return all
}

func (f *followedTargets) close() {
	// Once close has returned, wake won't be called anymore.
	for _, t := range f.list {
		t.stop()
		t.timer.Stop()
	}
}
