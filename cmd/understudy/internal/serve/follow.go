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
	"github.com/understudy-lb/understudy/internal/cds"
	"github.com/understudy-lb/understudy/internal/envoy"
	"github.com/understudy-lb/understudy/internal/join"
	"github.com/understudy-lb/understudy/internal/options"
	"github.com/understudy-lb/understudy/internal/resolving"
	"github.com/understudy-lb/understudy/internal/topology"
)

// follows holds the targets of Options.From. It is safe for concurrent use.
type follows struct {
	log     *slog.Logger
	wake    func()
	news    chan struct{}
	program options.Program

	mu   sync.Mutex
	list []*follow
}

type follow struct {
	name, target string // name of the cluster; target without secrets
	stop         func()

	cluster *endpointv3.ClusterLoadAssignment // the served cluster; nil before the first answer
	latest  *endpointv3.ClusterLoadAssignment // newer cluster that is not served yet, or nil
	hold    *time.Timer                       // ends the wait for mechanisms that have not answered; nil if there was no wait
	problem string
	waits   bool   // some discovery mechanism has neither answered nor failed
	notes   string // ignored settings of the answer
}

// startFollows follows the targets in o.From. Each is NAME=TARGET, or a target whose cluster is
// named after its authority.
func startFollows(o Options, wake func()) (*follows, error) {
	sources, err := o.Kubeconfig.Sources(o.From...)
	if err != nil {
		return nil, err
	}
	f := &follows{log: o.Log, wake: wake, news: make(chan struct{}, 1), program: options.Program{Sources: sources}}
	for _, text := range o.From {
		if err := f.start(text); err != nil {
			f.close()
			return nil, fmt.Errorf("--from: %w", err)
		}
	}
	return f, nil
}

func (f *follows) start(text string) (err error) {
	one := new(follow)
	var target string
	if one.name, target, err = splitFrom(text); err != nil {
		return err
	}
	one.target = resolving.Shown(target)
	if slices.ContainsFunc(f.list, func(other *follow) bool { return other.name == one.name }) {
		return fmt.Errorf("cluster %.100q is given twice; want another name for one of the targets, as in NAME=TARGET", one.name)
	}
	f.list = append(f.list, one)
	stop, err := resolving.Follow(target, f.program, func(n join.News) { f.heard(one, n) })
	one.stop = stop
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

func (f *follows) heard(one *follow, n join.News) {
	var answers []*topology.Checked
	var problems, notes []string
	if n.Why != "" {
		problems = append(problems, n.Why)
	}
	for _, found := range n.Found {
		if found.Trouble != "" {
			problems = append(problems, strings.TrimPrefix(found.Name+": ", ": ")+found.Trouble)
		}
		if found.Answer != nil {
			notes = append(notes, unserved(found, len(answers))...)
			answers = append(answers, found.Answer)
		}
	}
	var cluster *endpointv3.ClusterLoadAssignment
	if len(answers) > 0 {
		cluster = envoy.Write(one.name, answers...)
		if err := envoy.Validate(cluster); err != nil {
			cluster, problems = nil, append(problems, err.Error())
		}
	}
	f.mu.Lock()
	if cluster != nil {
		one.latest = cluster
	}
	switch whole := len(n.Waiting) == 0 || one.cluster != nil; {
	case one.latest == nil:
	case whole:
		one.cluster, one.latest = one.latest, nil
	case one.hold == nil:
		one.hold = time.AfterFunc(partsHold, func() { f.holdNoMore(one) })
	}
	f.note(one, strings.Join(problems, "; "), strings.Join(notes, "; "))
	one.waits = len(n.Waiting) > 0
	f.mu.Unlock()
	f.tell()
}

func (f *follows) tell() {
	f.wake()
	select {
	case f.news <- struct{}{}:
	default:
	}
}

// settle waits until each target has answered or failed, but no longer than partsHold. It returns
// the problems.
func (f *follows) settle() error {
	over := time.NewTimer(partsHold)
	defer over.Stop()
	for waits := true; ; {
		problems, more := f.wrong()
		if !more || !waits {
			return errors.Join(problems...)
		}
		select {
		case <-f.news:
		case <-over.C:
			waits = false
		}
	}
}

// wrong returns the problems of the targets. waits means that some target has not answered yet,
// which is a problem, too.
func (f *follows) wrong() (problems []error, waits bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, one := range f.list {
		waiting := one.waits || one.cluster == nil && one.problem == ""
		waits = waits || waiting
		if waiting || one.problem != "" {
			problems = append(problems, fmt.Errorf("%s: %s", one.target, cmp.Or(one.problem, "no answer yet")))
		}
	}
	return problems, waits
}

// partsHold limits the wait until all discovery mechanisms of a target have answered for the first
// time. In the meantime, the cluster from the cache is served, which has the endpoints of all of
// them.
const partsHold = 15 * time.Second

// holdNoMore ends the wait for the other mechanisms and serves the known endpoints.
func (f *follows) holdNoMore(one *follow) {
	f.mu.Lock()
	if one.latest != nil {
		one.cluster, one.latest = one.latest, nil
	}
	f.mu.Unlock()
	f.tell()
}

// unserved describes the ignored settings of an answer: its outlier detection, and its drops if an
// earlier mechanism has answered. A cluster has only one set of drops.
func unserved(found join.Found, before int) (notes []string) {
	if before > 0 && len(found.Answer.Drops) > 0 {
		notes = append(notes, found.Name+": its drops have no effect, because they are not those of the first part")
	}
	if found.OutlierDetection != "" {
		notes = append(notes, found.Name+": its outlier_detection has no effect")
	}
	return notes
}

// note logs the problem and the notes if they have changed. The caller holds the lock.
func (f *follows) note(one *follow, problem, notes string) {
	switch {
	case problem == one.problem:
	case problem == "":
		f.log.Info("target is well again", "cluster", one.name, "target", one.target)
	case one.cluster != nil:
		f.log.Error("target fails, what it led to before is still served", "cluster", one.name, "target", one.target, "error", problem)
	default:
		f.log.Error("target fails, nothing of it is served", "cluster", one.name, "target", one.target, "error", problem)
	}
	if notes != one.notes && notes != "" {
		f.log.Warn("not all of the target is served", "cluster", one.name, "target", one.target, "notes", notes)
	}
	one.problem, one.notes = problem, notes
}

func (f *follows) origins() map[origin]bool {
	all := make(map[origin]bool)
	for _, one := range f.list {
		all[originOf(one.target, one.name)] = true
	}
	return all
}

// into adds the targets' clusters to found. A cluster that is not known yet is nil. wrong is the
// number of targets with a problem. unknown means that some target has never answered and is not in
// the cache.
func (f *follows) into(found map[origin]*given, known map[origin]string) (wrong int, unknown bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, one := range f.list {
		o := originOf(one.target, one.name)
		found[o] = nil
		if one.cluster != nil {
			found[o] = &given{endpoints: one.cluster}
		} else if _, before := known[o]; !before {
			unknown = true
		}
		if one.problem != "" {
			wrong++
		}
	}
	return wrong, unknown
}

// close stops all targets. wake is not called after close has returned.
func (f *follows) close() {
	for _, one := range f.list {
		if one.stop != nil {
			one.stop()
		}
		f.mu.Lock()
		if one.hold != nil {
			one.hold.Stop()
		}
		f.mu.Unlock()
	}
}
