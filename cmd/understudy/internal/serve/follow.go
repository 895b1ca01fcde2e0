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

	_ "github.com/understudy-lb/understudy"                      // the targets that can be followed,
	_ "github.com/understudy-lb/understudy/discovery/kubernetes" // with these
	"github.com/understudy-lb/understudy/internal/cds"
	"github.com/understudy-lb/understudy/internal/envoy"
	"github.com/understudy-lb/understudy/internal/join"
	"github.com/understudy-lb/understudy/internal/options"
	"github.com/understudy-lb/understudy/internal/resolving"
	"github.com/understudy-lb/understudy/internal/topology"
)

// follows are the targets of Options.From. They may be used by any goroutine.
type follows struct {
	log     *slog.Logger
	wake    func()        // when there is something new
	news    chan struct{} // gets a value then, too
	program options.Program

	mu   sync.Mutex
	list []*follow
}

// follow is one target, and what it led to last.
type follow struct {
	name, target string // of the cluster; as it is shown
	stop         func()

	cluster *endpointv3.ClusterLoadAssignment // nil while there was none
	latest  *endpointv3.ClusterLoadAssignment // which cluster is to become, nil for nothing new
	hold    *time.Timer                       // that ends the wait for that, nil where none was begun
	problem string                            // what is wrong now, "" for nothing
	waits   bool                              // a part has neither answered nor failed
	notes   string                            // what of it has no effect
}

// startFollows follows targets, each NAME=TARGET, or a target alone, which is served by its
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

// splitFrom returns the name of the cluster and the target in NAME=TARGET. A name holds no colon and no
// slash, which a target has before its first parameter.
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

// heard takes what is known of a target.
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

// tell says that there is something new.
func (f *follows) tell() {
	f.wake()
	select {
	case f.news <- struct{}{}:
	default: // it was said already
	}
}

// settle waits until each target has led to something, or failed, and returns what is wrong.
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

// wrong returns what is wrong with the targets, and whether some have not answered yet, which is wrong as
// well.
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

// partsHold is how long the parts of a target that have answered wait for the others at first: what was
// served before, out of the cache, has the endpoints of those, too.
const partsHold = 15 * time.Second

// holdNoMore serves what has answered.
func (f *follows) holdNoMore(one *follow) {
	f.mu.Lock()
	if one.latest != nil {
		one.cluster, one.latest = one.latest, nil
	}
	f.mu.Unlock()
	f.tell()
}

// unserved says what of an answer has no effect: a cluster has one set of drops.
func unserved(found join.Found, before int) (notes []string) {
	if before > 0 && len(found.Answer.Drops) > 0 {
		notes = append(notes, found.Name+": its drops have no effect, because they are not those of the first part")
	}
	if found.OutlierDetection != "" {
		notes = append(notes, found.Name+": its outlier_detection has no effect")
	}
	return notes
}

// note logs what is wrong, and what has no effect, when that changes. The lock is held.
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

// origins are where the clusters come from.
func (f *follows) origins() map[origin]bool {
	all := make(map[origin]bool)
	for _, one := range f.list {
		all[originOf(one.target, one.name)] = true
	}
	return all
}

// into adds what the targets lead to, nil for what is not known yet. It returns how many are wrong, and
// whether one of them has never led to anything, by what was known before.
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

// close stops following. Nothing is woken afterwards.
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
