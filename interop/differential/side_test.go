package differential

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/attributes"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/testing/lbtest"
)

// side is one of the two policies that are compared, on a channel and over children
// of its own. It is used in a bubble.
type side struct {
	kind     kind
	prefix   string // of the names of its children's policies
	cc       *lbtest.ClientConn
	policy   balancer.Balancer
	stubs    []*lbtest.StubBuilder
	refused  map[string]bool   // children that refuse their updates
	onUpdate map[string]string // what children report from inside their updates

	updates   int
	mu        sync.Mutex // for published: a timer's goroutine may publish
	published []string   // in the last step
}

// kind is a kind of policy: how it is called here and there, and how it is told its
// children.
type kind struct {
	ours, theirs string
	configure    func(s *side, children []string) string
}

// newSide builds a policy. The stubs' policies are registered anew each time, so that
// a side knows its own children only.
func newSide(k kind, policy, prefix string) *side {
	s := &side{kind: k, prefix: prefix, cc: &lbtest.ClientConn{}, refused: map[string]bool{}, onUpdate: map[string]string{}}
	s.cc.OnUpdate(func(state balancer.State) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.published = append(s.published, state.ConnectivityState.String()+" "+answer(state))
	})
	for _, name := range []string{"stub", "other"} {
		b := &lbtest.StubBuilder{PolicyName: prefix + "_" + name, OnUpdate: s.updated}
		balancer.Register(b)
		s.stubs = append(s.stubs, b)
	}
	s.policy = balancer.Get(policy).Build(s.cc, balancer.BuildOptions{})
	return s
}

// both returns the two sides of a comparison.
func both(k kind) (ours, theirs *side) {
	return newSide(k, k.ours, "ours"), newSide(k, k.theirs, "theirs")
}

var errRefused = errors.New("no good")

// updated runs inside a child's update.
func (s *side) updated(stub *lbtest.Stub, _ balancer.ClientConnState) error {
	name := nameOf(stub.ID())
	if state, ok := s.onUpdate[name]; ok {
		report(stub, state)
	}
	if s.refused[name] {
		return errRefused
	}
	return nil
}

// child returns a child that is not closed, or nil; the newest, if there are two. The
// id of one of another type is such as "a:other".
func (s *side) child(id string) *lbtest.Stub {
	for _, b := range s.stubs {
		if stub := b.Get(id); stub != nil {
			return stub
		}
	}
	return nil
}

var states = map[string]connectivity.State{
	"READY":             connectivity.Ready,
	"CONNECTING":        connectivity.Connecting,
	"IDLE":              connectivity.Idle,
	"TRANSIENT_FAILURE": connectivity.TransientFailure,
}

// carryOut carries out a command, lets everything settle, and returns what there is to see.
func (s *side) carryOut(command string) string {
	words := strings.Fields(command)
	result := ""
	if words[0] == "published" { // by the last step
		return strings.Join(s.inStep(), ", ")
	}
	s.nextStep()
	switch args := words[1:]; words[0] {
	case "update":
		if err := s.update(args); err != nil {
			result = "; update fails"
		}
	case "report":
		if stub := s.child(args[0]); stub != nil {
			report(stub, args[1])
		}
	case "resolve-now":
		if stub := s.child(args[0]); stub != nil {
			stub.ResolveNow()
		}
		result = fmt.Sprintf("; asked %d times", s.cc.ResolveNows())
	case "update-without":
		if s.policy.UpdateClientConnState(balancer.ClientConnState{}) != nil {
			result = "; update fails"
		}
	case "refuse", "accept":
		s.refused[args[0]] = words[0] == "refuse"
	case "on-update":
		s.onUpdate[args[0]] = args[1]
	case "wait":
		d, err := time.ParseDuration(args[0])
		if err != nil {
			panic(err)
		}
		time.Sleep(d)
	case "exit-idle":
		s.policy.ExitIdle()
	case "resolver-error":
		s.policy.ResolverError(errors.New("no such host"))
	case "parse":
		return s.parse(strings.TrimPrefix(command, "parse "))
	case "ask": // what a child has been told
		stub := s.child(args[0])
		return fmt.Sprintf("%s: %d updates, %d to exit idle, %d errors", args[0], stub.Updates(), stub.ExitIdles(), len(stub.ResolverErrors()))
	default:
		panic("unknown command " + words[0])
	}
	synctest.Wait()
	return s.describe() + result
}

func (s *side) update(children []string) error {
	config, err := balancer.Get(s.name()).(balancer.ConfigParser).ParseConfig(json.RawMessage(s.kind.configure(s, children)))
	if err != nil {
		panic(err)
	}
	s.updates++
	return s.policy.UpdateClientConnState(balancer.ClientConnState{
		BalancerConfig: config,
		ResolverState:  resolver.State{Attributes: attributes.New(updateKey{}, s.updates)},
	})
}

func (s *side) nextStep() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.published = nil
}

// inStep returns what was published since nextStep.
func (s *side) inStep() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.published
}

// updateKey is where an update has its number.
type updateKey struct{}

// told returns the children that are not closed, and of each which update it was
// given last, how often it was told to leave IDLE, and how many errors of the
// resolver it was given.
func (s *side) told() string {
	var all []string
	for _, b := range s.stubs {
		for _, stub := range b.Built() {
			if !stub.IsClosed() {
				update := stub.Last().ResolverState.Attributes.Value(updateKey{})
				all = append(all, fmt.Sprintf("%s(%v,%d,%d)", stub.ID(), update, stub.ExitIdles(), len(stub.ResolverErrors())))
			}
		}
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

func (s *side) name() string {
	if s.prefix == "ours" {
		return s.kind.ours
	}
	return s.kind.theirs
}

// parse says whether a configuration is accepted. STUB stands for a child's policy.
func (s *side) parse(config string) string {
	config = strings.ReplaceAll(config, "STUB", s.prefix+"_stub")
	if _, err := balancer.Get(s.name()).(balancer.ConfigParser).ParseConfig(json.RawMessage(config)); err != nil {
		return "rejected"
	}
	return "accepted"
}

// report makes a child report, with a picker that is told from all others.
func report(stub *lbtest.Stub, state string) {
	var err error
	switch state {
	case failed:
		err = errors.New(stub.ID() + " refused")
	case idle:
		err = errors.New(stub.ID() + " idle")
	}
	stub.Report(states[state], err)
}

// describe returns the state that the policy published last, what calls get, and
// which children there are, such as "READY a b; children a b c".
func (s *side) describe() string {
	state := s.cc.State()
	return fmt.Sprintf("%v %s; children %s", state.ConnectivityState, answers(state), strings.Join(s.live(), " "))
}

// answers returns what calls get, each answer once.
func answers(state balancer.State) string {
	var all []string
	for range 200 { // enough for a random picker to pick every child
		if a := answer(state); !slices.Contains(all, a) {
			all = append(all, a)
		}
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// texts is what parts of errors are about. The first that is found counts.
var texts = []struct{ part, about string }{
	{"did not connect", "did not connect"},
	{errRefused.Error(), "no good"},
	{"no such host", "no such host"},
	{"configuration of type", "no configuration"},
	{"no targets", "no targets"},
	{"empty priority list", "no priorities"},
	{"all priorities are removed", "no priorities"},
}

// inUse is what our priority says of the child in use, which is the last, in an error
// that tells of all priorities.
var inUse = regexp.MustCompile(`^fail: no priority can take calls: (?:.*; )?p\d+ \S+: (.*?)(?: \(failing for .*\))?$`)

// answer returns what a call gets, with texts that each side words for itself cut
// down to what they are about.
func answer(state balancer.State) string {
	return about(inUse.ReplaceAllString(lbtest.Pick(state), "fail: $1"))
}

func about(a string) string {
	for _, text := range texts {
		if strings.Contains(a, text.part) {
			return "fail: " + text.about
		}
	}
	return a
}

// live returns the ids of the children that are not closed, sorted, each once.
func (s *side) live() []string {
	var ids []string
	for _, b := range s.stubs {
		for _, stub := range b.Built() {
			if !stub.IsClosed() {
				ids = append(ids, stub.ID())
			}
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}
