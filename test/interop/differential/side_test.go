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

// side is one of the two policies, with its own channel and children. It must be used in a synctest
// bubble.
type side struct {
	kind     kind
	prefix   string
	cc       *lbtest.ClientConn
	policy   balancer.Balancer
	stubs    []*lbtest.StubBuilder
	rejects  map[string]bool
	onUpdate map[string]string // by child, the state that it reports during its update

	updates   int
	mu        sync.Mutex // guards published
	published []string
}

// kind is a kind of policy. It contains the names of our policy and of grpc-go's, and a function
// that returns the configuration for a list of children.
type kind struct {
	ours, theirs string
	configure    func(s *side, children []string) string
}

// newSide builds a policy. It registers child policies under names of its own, so that two sides do
// not share children.
func newSide(k kind, policy, prefix string) *side {
	s := &side{kind: k, prefix: prefix, cc: &lbtest.ClientConn{}, rejects: map[string]bool{}, onUpdate: map[string]string{}}
	s.cc.OnUpdate(func(state balancer.State) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.published = append(s.published, state.ConnectivityState.String()+" "+answer(state))
	})
	for _, name := range []string{"stub", "other"} {
		b := &lbtest.StubBuilder{PolicyName: prefix + "_" + name, OnUpdate: s.handleUpdate}
		balancer.Register(b)
		s.stubs = append(s.stubs, b)
	}
	s.policy = balancer.Get(policy).Build(s.cc, balancer.BuildOptions{})
	return s
}

func newSides(k kind) (ours, theirs *side) {
	return newSide(k, k.ours, "ours"), newSide(k, k.theirs, "theirs")
}

var errRefused = errors.New("no good")

func (s *side) handleUpdate(stub *lbtest.Stub, _ balancer.ClientConnState) error {
	name := nameOf(stub.ID())
	if state, ok := s.onUpdate[name]; ok {
		report(stub, state)
	}
	if s.rejects[name] {
		return errRefused
	}
	return nil
}

// child returns the newest open child with the given ID, or nil. The child with the ID "a:other"
// has a policy of another type than "a".
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

// execute runs a command, waits until all goroutines are blocked, and returns the visible result.
func (s *side) execute(command string) string {
	words := strings.Fields(command)
	result := ""
	if words[0] == "published" {
		return strings.Join(s.publishedInStep(), ", ")
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
		s.rejects[args[0]] = words[0] == "refuse"
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
	case "ask":
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

func (s *side) publishedInStep() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.published
}

type updateKey struct{}

// received returns, for each open child, the number of its last update, the number of ExitIdle
// calls, and the number of resolver errors.
func (s *side) received() string {
	var all []string
	for _, b := range s.stubs {
		for _, stub := range b.Built() {
			if !stub.IsClosed() {
				update := stub.LastUpdate().ResolverState.Attributes.Value(updateKey{})
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

func (s *side) parse(config string) string {
	config = strings.ReplaceAll(config, "STUB", s.prefix+"_stub")
	if _, err := balancer.Get(s.name()).(balancer.ConfigParser).ParseConfig(json.RawMessage(config)); err != nil {
		return "rejected"
	}
	return "accepted"
}

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

// describe returns the last published state, the results of calls, and the open children, as in
// "READY a, b; children a b c".
func (s *side) describe() string {
	state := s.cc.State()
	return fmt.Sprintf("%v %s; children %s", state.ConnectivityState, answers(state), strings.Join(s.openChildren(), " "))
}

// answers returns the distinct results of calls in a state.
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

// texts contains parts of errors, and the short text for an error with this part. The first match
// is used.
var texts = []struct{ part, short string }{
	{"did not connect", "did not connect"},
	{errRefused.Error(), "no good"},
	{"no such host", "no such host"},
	{"configuration of type", "no configuration"},
	{"no targets", "no targets"},
	{"empty priority list", "no priorities"},
	{"all priorities are removed", "no priorities"},
}

// inUse matches the error in which our priority policy lists the errors of all priorities. Its
// group is the error of the last priority, which is the one in use.
var inUse = regexp.MustCompile(`^fail: no priority can take calls: (?:.*; )?p\d+ \S+: (.*?)(?: \(failing for .*\))?$`)

func answer(state balancer.State) string {
	return shorten(inUse.ReplaceAllString(lbtest.Pick(state), "fail: $1"))
}

func shorten(a string) string {
	for _, text := range texts {
		if strings.Contains(a, text.part) {
			return "fail: " + text.short
		}
	}
	return a
}

func (s *side) openChildren() []string {
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
