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

// follow is one target with its last results.
type follow struct {
	name, target string // name of the cluster; target without secrets
	stop         func()

	cluster *endpointv3.ClusterLoadAssignment // the served cluster; nil before the first answer
	latest  *endpointv3.ClusterLoadAssignment // newer cluster that is not served yet, or nil
	hold    *time.Timer                       // serves latest even if some mechanisms have not answered; nil if that was never necessary
	problem string                            // current problem, or ""
	waits   bool                              // some mechanism has neither answered nor failed
	notes   string                            // notes about parts of the answer without effect
}

// startFollows follows the targets of o. Each is NAME=TARGET, or a target that is served under its
// authority.
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
// A name contains no colon and no slash, but a target has one before its first "=".
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
	default: // the last change has not been handled yet
	}
}

// settle waits until each target has answered or failed, but at most for partsHold. It returns the
// problems.
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

// wrong returns the problems of the targets. waits means that one of the problems is a target that
// has not answered yet.
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

// partsHold limits how long the first answers of a target are held back because other mechanisms
// have not answered. In the meantime, the cluster from the cache is served, which includes the
// endpoints of these mechanisms.
const partsHold = 15 * time.Second

// holdNoMore serves the endpoints of the mechanisms that have answered.
func (f *follows) holdNoMore(one *follow) {
	f.mu.Lock()
	if one.latest != nil {
		one.cluster, one.latest = one.latest, nil
	}
	f.mu.Unlock()
	f.tell()
}

// unserved returns notes about the parts of an answer without effect: its outlier detection, and
// its drops if an earlier mechanism has answered, because a cluster has only one set of drops.
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

// into adds the targets' clusters to found, with nil for clusters that are not known yet. It
// returns the number of targets with a problem, and whether the cluster of some target has never
// been known, even from the cache.
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
