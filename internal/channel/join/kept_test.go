package join

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/lb/live"
	"github.com/understudy-lb/understudy/internal/testing/flat"
)

// The source of an idle channel fails when the channel is used again. The last answer is used. If
// the source then gives the same answer, the channel gets nothing new.
func TestLastAnswerIsUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &listening{}
		config := configOf(t.Name(), "", s)
		_, c := start(t, config)
		a := answerOf(1)
		a.Version, a.Names = "7", map[string]discovery.Name{"host": {Addresses: []string{"10.0.0.1"}}}
		_ = s.Update(a)
		synctest.Wait()
		time.Sleep(20 * time.Minute)
		s.confirmed = time.Now().Add(-10 * time.Minute)
		c.Close()
		synctest.Wait()
		if k, hasAnswer := lastGood.get(t.Name(), time.Now(), keepFor); !hasAnswer || time.Since(k.Confirmed) != 10*time.Minute {
			t.Errorf("an answer is stored = %v, and confirmed %v ago; want the ten minutes that the source says", hasAnswer, time.Since(k.Confirmed))
		}
		time.Sleep(5 * time.Minute)
		cc, c := start(t, config)
		defer c.Close()
		if got := s.Remembered(); fmt.Sprint(got["host"].Addresses) != "[10.0.0.1]" || time.Since(got["host"].Until) != 15*time.Minute {
			t.Errorf("the source remembers %v, want the lookup of 15 minutes ago", got)
		}
		s.Fail(errors.New("down"))
		if got := cc.last(); got != "10.0.0.1:1 " {
			t.Errorf("the channel got %q, want the stored answer", got)
		}
		c.events.Do(func() {
			if got := c.core.Statuses()[0].Answer.Version; got != "7" {
				t.Errorf("the answer has the version %q, want 7", got)
			}
		})
		n := len(cc.states)
		_ = s.Update(answerOf(1))
		synctest.Wait()
		if len(cc.states) != n {
			t.Error("the channel got the same answer again")
		}
	})
}

// The list of a source is confirmed like an answer. Its mechanisms remember their own lookups, and
// a mechanism that stays in the list keeps its source.
func TestListsAreKeptAndConfirmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		parent, a, b := &listening{}, &listening{}, &listening{}
		_, c := start(t, configOf(t.Name(), "", parent))
		defer c.Close()
		list := []discovery.Mechanism{{Name: "a", Source: a}, {Name: "b", Source: b}}
		parent.Mechanisms(list)
		synctest.Wait()
		coreAnswer := answerOf(1)
		coreAnswer.Names = map[string]discovery.Name{"host": {Addresses: []string{"10.0.0.1"}}}
		_ = a.Update(coreAnswer)
		synctest.Wait()
		time.Sleep(30 * time.Minute)
		parent.confirmed = time.Now()
		parent.Confirm()
		time.Sleep(time.Minute)
		synctest.Wait()
		if k, hasAnswer := lastGood.get(t.Name(), time.Now(), keepFor); !hasAnswer || time.Since(k.Confirmed) != time.Minute {
			t.Errorf("a list is stored = %v, and confirmed %v ago; want a minute", hasAnswer, time.Since(k.Confirmed))
		}
		parent.Mechanisms(list[:1])
		synctest.Wait()
		parent.Mechanisms(list)
		synctest.Wait()
		if got := fmt.Sprint(a.starts, b.starts); got != "1 2" {
			t.Errorf("the sources were started %s times, want 1 2", got)
		}
		other := &fakeSource{}
		a.confirmed = time.Now()
		parent.Mechanisms([]discovery.Mechanism{{Name: "a", Source: other}})
		synctest.Wait()
		if got := other.Remembered(); time.Since(got["host"].Until) != 0 {
			t.Errorf("the new source of a remembers %v, want the lookup that is in use", got)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		c.events.Do(func() {
			if c.wake.Runs() {
				t.Errorf("a timer is left, which fires at %v", c.core.Wake())
			}
		})
	})
}

// A list may change what a mechanism prefers, or its outlier detection, while its source and answer
// stay the same.
func TestListChangesMechanism(t *testing.T) {
	answer := flat.Answer(flat.Endpoint{Address: "10.0.0.1:1", Locality: "r/a"}, flat.Endpoint{Address: "10.0.0.2:1", Locality: "r/b"})
	answer.Priorities[0].Localities[0].Endpoints[0].ForZones = []string{"b"}
	answer.Priorities[0].Localities[1].Endpoints[0].ForZones = []string{"a"}
	synctest.Test(t, func(t *testing.T) {
		parent, listed := &fakeSource{}, &fakeSource{}
		config := configOf(nil, "", parent)
		config.Settings.Zone = "a"
		cc, c := start(t, config)
		defer c.Close()
		for i, test := range []struct{ prefer, outliers, want string }{
			{"", "", "10.0.0.1:1 , 10.0.0.2:1 "},
			{"hints", "", "10.0.0.2:1 , 10.0.0.1:1 "},
			{"hints", `{"interval":"77s"}`, "10.0.0.2:1 , 10.0.0.1:1 "},
			{"", `{"interval":"77s"}`, "10.0.0.1:1 , 10.0.0.2:1 "},
			{"", "", "10.0.0.1:1 , 10.0.0.2:1 "},
			{"", "", "10.0.0.1:1 , 10.0.0.2:1 "},
		} {
			parent.Mechanisms([]discovery.Mechanism{{Name: "m", Source: listed, Prefer: test.prefer, OutlierDetection: test.outliers}})
			synctest.Wait()
			if i == 0 {
				_ = listed.Update(answer)
			}
			if got := cc.last(); got != test.want || strings.Contains(cc.config(), `"interval":"77s"`) != (test.outliers != "") || len(cc.states) != min(i+1, 5) {
				t.Errorf("list %d, which prefers %q and detects outliers with %q: the channel got %q and %s in update %d, want %q", i, test.prefer, test.outliers, got, cc.config(), len(cc.states), test.want)
			}
		}
	})
}

// uncomparable is a source that cannot be compared.
type uncomparable struct {
	fakeSource
	_ []int
}

func (uncomparable) Check(bool) error { return nil }
func (uncomparable) Start(*discovery.Receiver) (discovery.Started, error) {
	return discovery.Started{}, nil
}

func TestSourcesThatCannotBeCompared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		parent := &fakeSource{}
		_, c := start(t, configOf(nil, "", parent))
		defer c.Close()
		for range 2 {
			parent.Mechanisms([]discovery.Mechanism{{Name: "a", Source: uncomparable{}}})
			synctest.Wait()
		}
	})
}

// The debug page shows each source, and how many priorities and endpoints it has.
func TestDebugPage(t *testing.T) {
	live.Enable()
	resolved := discovery.Answer{Resolved: []resolver.Endpoint{{Addresses: []resolver.Address{{Addr: "10.0.0.1:1"}}}, {Addresses: []resolver.Address{{Addr: "10.0.0.2:1"}}}}}
	two := flat.Answer(flat.Endpoint{Address: "10.0.0.1:1"}, flat.Endpoint{Address: "10.0.0.2:1", Priority: 1}, flat.Endpoint{Address: "10.0.0.3:1", Priority: 1})
	synctest.Test(t, func(t *testing.T) {
		s, inner := &fakeSource{}, &fakeSource{}
		config := configOf(nil, "", s)
		config.Target = t.Name()
		_, c := start(t, config)
		defer c.Close()
		want := func(want string) {
			t.Helper()
			synctest.Wait()
			var got []string
			for _, channel := range live.Channels() {
				for _, source := range channel.Sources {
					if channel.Target == t.Name() {
						got = append(got, fmt.Sprintf("%s %s %d %d %s", source.Name, source.State, source.Priorities, source.Endpoints, source.Error))
					}
				}
			}
			if got := strings.Join(got, "; "); got != want {
				t.Errorf("the page shows %q, want %q", got, want)
			}
		}
		_ = s.Update(two)
		want("x answered 2 3 ")
		_ = s.Update(resolved)
		want("x answered 1 2 ")
		s.Mechanisms([]discovery.Mechanism{{Name: "inner", Source: inner}})
		want("x answered 1 2 ")
		_ = inner.Update(two)
		want("inner answered 2 3 ")
		s.Fail(errors.New("down"))
		want("x answered 0 0 down; inner answered 2 3 ")
	})
}

// The source of a channel has failed for two hours. A source that succeeds it in the channel uses its
// answer.
func TestSuccessorUsesOldAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		parent, first, second := &fakeSource{}, &fakeSource{}, &fakeSource{}
		cc, c := start(t, configOf(t.Name(), "", parent))
		defer c.Close()
		parent.Mechanisms([]discovery.Mechanism{{Name: "a", Source: first}})
		synctest.Wait()
		_ = first.Update(answerOf(1))
		first.Fail(errors.New("down"))
		time.Sleep(2 * time.Hour)
		parent.Mechanisms([]discovery.Mechanism{{Name: "a", Source: second}})
		synctest.Wait()
		second.Fail(errors.New("away"))
		synctest.Wait()
		if got, texts := cc.last(), c.core.Statuses()[0].Failure.Text; got != "10.0.0.1:1 " || texts != "away" {
			t.Errorf("the channel uses %q of a source that failed with %q, want the old answer for the new source", got, texts)
		}
	})
}

// The source of a channel answered hours ago. A new channel whose own source fails uses that answer
// unless the first source fails too. It doesn't matter what channels there were in between.
func TestAnswerOfAnotherChannel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeSource{answer: answerOf(1)}
		_, c := start(t, configOf(t.Name(), "", s))
		defer c.Close()
		for i, step := range []struct {
			does func()
			want string
		}{{func() {}, "10.0.0.1:1 "}, {func() {}, "10.0.0.1:1 "}, {func() { s.Fail(errors.New("down")) }, "nothing"}, {s.Confirm, "10.0.0.1:1 "}} {
			step.does()
			time.Sleep(2 * time.Hour)
			failing := &fakeSource{failure: errors.New("down")}
			cc, other := start(t, configOf(t.Name(), "", failing))
			if got := cc.last(); got != step.want {
				t.Errorf("step %d: a new channel uses %q, want %q", i, got, step.want)
			}
			_ = failing.Update(answerOf(1))
			other.Close()
		}
	})
}

// A channel's source fails, or the channel is closed, while another of its sources hangs. New channels
// don't get an answer that's hours old.
func TestHungSourceKeepsNoAnswerCurrent(t *testing.T) {
	for _, isClosed := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			parent, a, hung := &fakeSource{}, &fakeSource{answer: answerOf(1)}, &hangingSource{resume: make(chan struct{})}
			_, c := start(t, configOf(t.Name(), "", parent))
			parent.Mechanisms([]discovery.Mechanism{{Name: "a", Source: a}})
			synctest.Wait()
			parent.Mechanisms([]discovery.Mechanism{{Name: "a", Source: a}, {Name: "hung", Source: hung}})
			synctest.Wait()
			if isClosed {
				c.Close()
			} else {
				a.Fail(errors.New("down"))
			}
			for i, want := range []string{"10.0.0.1:1 ", "nothing"} {
				time.Sleep(59 * time.Minute)
				parent := &fakeSource{}
				cc, other := start(t, configOf(t.Name(), "", parent))
				parent.Mechanisms([]discovery.Mechanism{{Name: "a", Source: &fakeSource{failure: errors.New("down")}}})
				synctest.Wait()
				if got := cc.last(); got != want {
					t.Errorf("closed %v, try %d: a new channel uses %q, want %q", isClosed, i, got, want)
				}
				other.Close()
			}
			close(hung.resume)
			c.Close()
		})
	}
}

type hangingSource struct {
	fakeSource
	resume chan struct{}
}

func (h *hangingSource) Start(r *discovery.Receiver) (discovery.Started, error) {
	<-h.resume
	return h.fakeSource.Start(r)
}

// Two channels have different answers. The source of the later one has failed for hours.
func TestSourceKeepsOnlyItsOwnAnswerCurrent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := &fakeSource{answer: answerOf(1)}, &fakeSource{answer: answerOf(2)}
		for _, s := range []*fakeSource{a, b} {
			_, c := start(t, configOf(t.Name(), "", s))
			defer c.Close()
		}
		b.Fail(errors.New("down"))
		time.Sleep(2 * time.Hour)
		cc, c := start(t, configOf(t.Name(), "", &fakeSource{failure: errors.New("down")}))
		defer c.Close()
		if got := cc.last(); got != "nothing" {
			t.Errorf("a new channel uses %q", got)
		}
	})
}
