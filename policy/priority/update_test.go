package priority

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"

	core "github.com/understudy-lb/understudy/internal/core/priority"
	"github.com/understudy-lb/understudy/internal/lb/shell"
	"github.com/understudy-lb/understudy/internal/testing/lbtest"
	scenario "github.com/understudy-lb/understudy/internal/testing/priorityscenario"
)

// stubbed is a policy whose children are stubs.
type stubbed struct {
	*lbtest.StubBuilder
	cc     *lbtest.ClientConn
	policy balancer.Balancer
}

func newStubbed(t *testing.T, onUpdate func(*lbtest.Stub, balancer.ClientConnState) error) *stubbed {
	s := &stubbed{StubBuilder: &lbtest.StubBuilder{PolicyName: "stub_update", OnUpdate: onUpdate}, cc: &lbtest.ClientConn{}}
	balancer.Register(s.StubBuilder)
	s.policy = newBuilder(Name).Build(s.cc, balancer.BuildOptions{})
	t.Cleanup(s.policy.Close)
	return s
}

// update updates the policy to the children, in the order of their priority. options are more fields
// of the configuration, such as `"warmStandby": 1,`.
func (s *stubbed) update(state resolver.State, options string, children ...string) error {
	return s.updateConfig(state, configText(options, children...))
}

func (s *stubbed) updateConfig(state resolver.State, text string) error {
	err := s.policy.UpdateClientConnState(balancer.ClientConnState{ResolverState: state, BalancerConfig: parse(text)})
	s.wait()
	return err
}

// wait waits until the policy has handled all reports.
func (s *stubbed) wait() { shell.PolicyOf(s.policy).(*policy).Do(func() {}) }

func (s *stubbed) report(child string, state connectivity.State, err error) {
	s.Get(child).Report(state, err)
	s.wait()
}

func configText(options string, children ...string) string {
	var configs, priorities []string
	for _, name := range children {
		configs = append(configs, fmt.Sprintf(`%q: {"config": [{"stub_update": {"id": %q}}]}`, name, name))
		priorities = append(priorities, strconv.Quote(name))
	}
	return fmt.Sprintf(`{%s "children": {%s}, "priorities": [%s]}`, options, strings.Join(configs, ", "), strings.Join(priorities, ", "))
}

// An update adds a child above the one in use, and the new child fails during this update. This
// must not count as a failover.
func TestNewChildThatFailsIsNotFailover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRecorder()
		defer r.Close()
		m := &lbtest.Recorder{}
		r.Recorder = m
		r.Script(map[string][]scenario.Reaction{"p0": {{Report: failed}}, "p1": {{Report: ready}}})
		r.Update(update("p1"))
		r.Take()
		takeLogged()
		r.Update(update("p0", "p1"))
		if got, want := r.Take(), []string{"update p1", "create p0", "publish p1 READY"}; !slices.Equal(got, want) {
			t.Errorf("policy did %q, want %q", got, want)
		}
		wantLog(t)
		if len(m.Counts()) > 0 {
			t.Errorf("counted %v, want nothing", m.Counts())
		}
	})
}

// Child b refuses its first update while the next one waits in the queue, and accepts the next one.
// The refusal must not shorten the failover timeout of b.
func TestRefusalDoesNotAffectNextUpdate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refuse, entered := make(chan struct{}), false
		p := newStubbed(t, func(s *lbtest.Stub, _ balancer.ClientConnState) error {
			if s.ID() != "b" {
				return nil
			}
			if !entered {
				entered = true
				<-refuse
				return errors.New("no endpoints")
			}
			s.Report(connectivity.Connecting, nil)
			return nil
		})
		if err := p.update(resolver.State{}, "", "a", "b"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if !entered {
			t.Fatal("b was not created")
		}
		updated := make(chan error)
		go func() { updated <- p.update(resolver.State{}, "", "a", "b") }()
		synctest.Wait()
		close(refuse)
		if err := <-updated; err != nil {
			t.Errorf("error = %v, want nil: every child accepts the update", err)
		}
		synctest.Wait()
		if state := p.cc.State().ConnectivityState; state != connectivity.Connecting {
			t.Errorf("state is %v, want CONNECTING while b has time to connect", state)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		want := `fail: no priority can take calls: p0 a: did not connect within 10 s (failing for 10 s); p1 b: did not connect within 10 s, last error: refused its update: no endpoints`
		if got := lbtest.Pick(p.cc.State()); got != want {
			t.Errorf("calls get %q in %v, want %q", got, p.cc.State().ConnectivityState, want)
		}
	})
}

// A child that is not in use fails with another error. The errors of calls must contain the new
// error. The picker must stay the same, because with a new picker, gRPC would pick again for all
// waiting calls.
func TestCallErrorsHaveCurrentReasons(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newStubbed(t, func(s *lbtest.Stub, _ balancer.ClientConnState) error {
			s.CC.UpdateState(shell.Failed(errors.New("old")))
			return nil
		})
		if err := p.update(resolver.State{}, "", "a", "b"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		before := len(p.cc.States())
		p.Get("a").CC.UpdateState(shell.Failed(errors.New("new")))
		synctest.Wait()
		want := "fail: no priority can take calls: p0 a: new; p1 b: old"
		if got := lbtest.Pick(p.cc.State()); got != want {
			t.Errorf("calls get %q, want %q", got, want)
		}
		if n := len(p.cc.States()); n != before {
			t.Errorf("%d states were published for a child that is not in use, want none", n-before)
		}
	})
}

// One priority policy is the child of another. The update of the inner policy must not return an
// error while one of its children can still connect.
func TestConnectingInnerPolicyHasNotFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newStubbed(t, func(s *lbtest.Stub, _ balancer.ClientConnState) error {
			if s.ID() == "empty" {
				s.Report(connectivity.TransientFailure, errors.New("no endpoints"))
				return balancer.ErrBadResolverState
			}
			return nil
		})
		outer := fmt.Sprintf(`{"children": {"inner": {"config": [{%q: %s}]}, "backup": {"config": [{"stub_update": {"id": "backup"}}]}},
			"priorities": ["inner", "backup"]}`, Name, configText("", "empty", "connecting"))
		if err := p.updateConfig(resolver.State{}, outer); err != nil {
			t.Errorf("error = %v, want none while a child connects", err)
		}
		synctest.Wait()
		if p.Get("backup") != nil {
			t.Error("the backup was created although the inner policy is connecting")
		}
		if state := p.cc.State().ConnectivityState; state != connectivity.Connecting {
			t.Errorf("state is %v, want CONNECTING", state)
		}
		p.report("connecting", connectivity.TransientFailure, errors.New("refused"))
		synctest.Wait() // for the policy above
		if p.Get("backup") == nil {
			t.Error("the backup was not created although all of the inner policy has failed")
		}
	})
}

// The policy must not call Pick to get a child's error: the picker of another module might start a
// connection or count a call.
func TestErrorsAreReadWithoutPick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRecorder()
		defer r.Close()
		r.Update(update("p0", "p1"))
		picks := 0
		foreign := balancer.State{ConnectivityState: connectivity.TransientFailure, Picker: pickCounter{&picks}}
		takeLogged()
		r.child("p0").cc.UpdateState(foreign)
		wantLog(t, `WARNING lbtest:///target: failover from p0 to p1, which is CONNECTING, after 0 ms: p0: TRANSIENT_FAILURE`)
		r.Report("p0", scenario.Report{State: core.Ready})
		r.Report("p0", scenario.Report{State: core.Connecting})
		r.Advance(10 * time.Second)
		if picks > 0 {
			t.Errorf("the picker was called %d times, want 0", picks)
		}
	})
}

type pickCounter struct{ picks *int }

func (c pickCounter) Pick(balancer.PickInfo) (balancer.PickResult, error) {
	*c.picks++
	return balancer.PickResult{}, errors.New("refused")
}

func TestReportsOfUnusedChildrenAreNotPublished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRecorder()
		defer r.Close()
		r.Update(update("p0", "p1"))
		r.Report("p0", failed)
		r.Report("p1", ready)
		r.Take()
		for range 100 {
			r.Report("p0", failed)
			r.Report("p0", connecting)
		}
		if got := r.Take(); len(got) > 0 {
			t.Errorf("policy did %q, want nothing", got)
		}
	})
}
