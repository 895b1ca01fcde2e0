package serve

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	_ "github.com/understudy-lb/understudy"                      // registers the targets of this project
	_ "github.com/understudy-lb/understudy/discovery/kubernetes" // registers Kubernetes targets
	"github.com/understudy-lb/understudy/internal/channel/join"
	"github.com/understudy-lb/understudy/internal/channel/resolving"
	"github.com/understudy-lb/understudy/internal/channel/topology"
	"github.com/understudy-lb/understudy/internal/config/options"
	"github.com/understudy-lb/understudy/internal/envoy/cds"
	"github.com/understudy-lb/understudy/internal/envoy/messages"
)

// followedTargets follows the targets of Options.From. It is safe for concurrent use.
type followedTargets struct {
	log     *slog.Logger
	wake    func()
	changed chan struct{}
	program options.Program

	mu   sync.Mutex
	list []*followedTarget
}

type followedTarget struct {
	name, target string // name of the cluster; the target without secrets
	stop         func()

	cluster          *endpointv3.ClusterLoadAssignment // the served cluster; nil before the first answer
	pending          *endpointv3.ClusterLoadAssignment // a newer cluster that is not served yet, or nil
	firstAnswerTimer *time.Timer                       // ends the wait for mechanisms that have not answered; nil before the wait
	problem          string
	waiting          bool   // some discovery mechanism has neither answered nor failed
	notes            string // settings of the answers that are ignored
}

// followTargets starts to follow the targets in o.From. Each entry is NAME=TARGET, or a target
// whose cluster is named after the target's authority.
func followTargets(o Options, wake func()) (*followedTargets, error) {
	sources, err := o.Kubeconfig.Sources(o.From...)
	if err != nil {
		return nil, err
	}
	f := &followedTargets{log: o.Log, wake: wake, changed: make(chan struct{}, 1), program: options.Program{Sources: sources}}
	for _, text := range o.From {
		if err := f.start(text); err != nil {
			f.close()
			return nil, fmt.Errorf("--from: %w", err)
		}
	}
	return f, nil
}

func (f *followedTargets) start(text string) (err error) {
	t := new(followedTarget)
	var target string
	if t.name, target, err = splitFrom(text); err != nil {
		return err
	}
	t.target = resolving.Shown(target)
	if slices.ContainsFunc(f.list, func(other *followedTarget) bool { return other.name == t.name }) {
		return fmt.Errorf("cluster %.100q is given twice; want another name for one of the targets, as in NAME=TARGET", t.name)
	}
	f.list = append(f.list, t)
	stop, err := resolving.Follow(target, f.program, func(state join.State) { f.receive(t, state) })
	t.stop = stop
	return err
}

// splitFrom splits NAME=TARGET. Without a name, the cluster is named after the target's authority.
// A target has a colon or a slash before its first "="; a name has neither.
func splitFrom(text string) (name, target string, err error) {
	name, target, named := strings.Cut(text, "=")
	if !named || strings.ContainsAny(name, ":/?") {
		target = text
		if name, err = resolving.Authority(target); err != nil {
			return "", "", err
		}
	}
	if problem := cds.NameProblem(name); problem != "" {
		return "", "", fmt.Errorf("%.100q: %s; want NAME=TARGET", resolving.Shown(text), problem)
	}
	return name, target, nil
}

func (f *followedTargets) receive(t *followedTarget, state join.State) {
	var answers []*topology.Checked
	var problems, notes []string
	if state.Why != "" {
		problems = append(problems, state.Why)
	}
	for _, mechanism := range state.Mechanisms {
		if mechanism.Trouble != "" {
			problems = append(problems, strings.TrimPrefix(mechanism.Name+": ", ": ")+mechanism.Trouble)
		}
		if mechanism.Answer != nil {
			notes = append(notes, ignoredSettings(mechanism, len(answers))...)
			answers = append(answers, mechanism.Answer)
		}
	}
	var cluster *endpointv3.ClusterLoadAssignment
	if len(answers) > 0 {
		var leftOut []string
		var err error
		if cluster, leftOut, err = messages.Write(t.name, answers...); err == nil {
			err = messages.Validate(cluster)
		}
		if err != nil {
			cluster, problems = nil, append(problems, err.Error())
		}
		notes = append(notes, leftOut...)
	}
	f.mu.Lock()
	if cluster != nil {
		t.pending = cluster
	}
	switch complete := len(state.Waiting) == 0 || t.cluster != nil; {
	case t.pending == nil:
	case complete:
		t.cluster, t.pending = t.pending, nil
	case t.firstAnswerTimer == nil:
		t.firstAnswerTimer = time.AfterFunc(mechanismTimeout, func() { f.stopWaiting(t) })
	}
	f.logChanges(t, strings.Join(problems, "; "), strings.Join(notes, "; "))
	t.waiting = len(state.Waiting) > 0
	f.mu.Unlock()
	f.notify()
}

func (f *followedTargets) notify() {
	f.wake()
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// waitForAnswers waits until each target has answered or failed, but no longer than
// mechanismTimeout. It returns the problems of the targets.
func (f *followedTargets) waitForAnswers() error {
	timer := time.NewTimer(mechanismTimeout)
	defer timer.Stop()
	for mayWait := true; ; {
		problems, waiting := f.collectProblems()
		if !waiting || !mayWait {
			return errors.Join(problems...)
		}
		select {
		case <-f.changed:
		case <-timer.C:
			mayWait = false
		}
	}
}

// collectProblems returns the problems of the targets. waiting reports whether some target has not
// answered yet, which also counts as a problem.
func (f *followedTargets) collectProblems() (problems []error, waiting bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, t := range f.list {
		isWaiting := t.waiting || t.cluster == nil && t.problem == ""
		waiting = waiting || isWaiting
		if isWaiting || t.problem != "" {
			problems = append(problems, fmt.Errorf("%s: %s", t.target, cmp.Or(t.problem, "no answer yet")))
		}
	}
	return problems, waiting
}

// mechanismTimeout limits the wait until all discovery mechanisms of a target have answered for the
// first time. During this wait, the cluster from the cache is served, which has the endpoints of
// all mechanisms.
const mechanismTimeout = 15 * time.Second

// stopWaiting ends the wait for mechanisms that have not answered, and serves the known endpoints.
func (f *followedTargets) stopWaiting(t *followedTarget) {
	f.mu.Lock()
	if t.pending != nil {
		t.cluster, t.pending = t.pending, nil
	}
	f.mu.Unlock()
	f.notify()
}

// ignoredSettings describes the settings of an answer that are ignored: its outlier detection, and
// its drops if an earlier mechanism has answered. A cluster has only one set of drops.
func ignoredSettings(mechanism join.MechanismState, earlierAnswers int) (notes []string) {
	if earlierAnswers > 0 && len(mechanism.Answer.Drops) > 0 {
		notes = append(notes, mechanism.Name+": its drops have no effect, because they are not those of the first mechanism")
	}
	if mechanism.OutlierDetection != "" {
		notes = append(notes, mechanism.Name+": its outlier_detection has no effect")
	}
	return notes
}

// logChanges logs the problem and the notes of a target if they have changed. The caller must hold
// f.mu.
func (f *followedTargets) logChanges(t *followedTarget, problem, notes string) {
	switch {
	case problem == t.problem:
	case problem == "":
		f.log.Info("target has recovered", "cluster", t.name, "target", t.target)
	case t.cluster != nil:
		f.log.Error("target fails, its last good endpoints are still served", "cluster", t.name, "target", t.target, "error", problem)
	default:
		f.log.Error("target fails, none of its endpoints are served", "cluster", t.name, "target", t.target, "error", problem)
	}
	if notes != t.notes && notes != "" {
		f.log.Warn("some settings of the target are ignored", "cluster", t.name, "target", t.target, "notes", notes)
	}
	t.problem, t.notes = problem, notes
}

func (f *followedTargets) origins() map[origin]bool {
	all := make(map[origin]bool)
	for _, t := range f.list {
		all[originOf(t.target, t.name)] = true
	}
	return all
}

// addClusters adds an entry for each target to found. The entry is nil while the target has never
// answered. known has the clusters that are already served, including those from the cache. failing
// is the number of targets with a problem. unknown means that some target has never answered and is
// not in known.
func (f *followedTargets) addClusters(found map[origin]*clusterConfig, known map[origin]string) (failing int, unknown bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, t := range f.list {
		o := originOf(t.target, t.name)
		found[o] = nil
		if t.cluster != nil {
			found[o] = &clusterConfig{endpoints: t.cluster}
		} else if _, exists := known[o]; !exists {
			unknown = true
		}
		if t.problem != "" {
			failing++
		}
	}
	return failing, unknown
}

// close stops following the targets. wake is not called after close has returned.
func (f *followedTargets) close() {
	for _, t := range f.list {
		if t.stop != nil {
			t.stop()
		}
		f.mu.Lock()
		if t.firstAnswerTimer != nil {
			t.firstAnswerTimer.Stop()
		}
		f.mu.Unlock()
	}
}
