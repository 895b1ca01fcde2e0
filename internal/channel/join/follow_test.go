package join_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/understudy-lb/understudy/discovery"
	_ "github.com/understudy-lb/understudy/discovery/failover"
	"github.com/understudy-lb/understudy/internal/channel/join"
	"github.com/understudy-lb/understudy/internal/config/options"
	"github.com/understudy-lb/understudy/internal/testing/settle"
)

var manualSources = make(map[string]*manualSource)

type manualSource struct {
	*discovery.Receiver
	openCount atomic.Int32
}

func (*manualSource) Check(bool) error { return nil }

func (m *manualSource) Start(r *discovery.Receiver) (discovery.Started, error) {
	m.Receiver = settle.Receiver(r)
	m.openCount.Add(1)
	return discovery.Started{Close: func() { m.openCount.Add(-1) }}, nil
}

func init() {
	discovery.Register("manual", func(t *discovery.Target) ([]discovery.Mechanism, error) {
		s := manualSources[t.Endpoint()]
		if s == nil {
			s = new(manualSource)
			manualSources[t.Endpoint()] = s
		}
		return []discovery.Mechanism{{Source: s}}, nil
	})
}

func answerOf(address string) discovery.Answer {
	return discovery.Answer{Priorities: []discovery.Priority{{Localities: []discovery.Locality{{Endpoints: []discovery.Endpoint{{Addresses: []string{address}}}}}}}}
}

// targetCount makes the target of each test unique. Equal targets would share stored answers.
var targetCount int

// follow calls Follow for a target, and stop when the test ends. take returns the states since its
// last call, one per line.
func follow(t *testing.T, target string) (take func() string, stop func()) {
	clear(manualSources)
	targetCount++
	uniquePrefix := fmt.Sprintf("manual://%d/", targetCount)
	target = strings.ReplaceAll(target, "manual:///", uniquePrefix)
	var mu sync.Mutex
	var lines []string
	start := time.Now()
	stop, err := join.Follow(target, options.Program{}, func(state join.State) {
		mu.Lock()
		defer mu.Unlock()
		line := state.Why + " "
		for _, f := range state.Mechanisms {
			line += f.Name + "="
			if f.Answer != nil {
				line += f.Answer.Priorities[0].Localities[0].Endpoints[0].Addresses[0]
			}
			if f.Trouble != "" {
				line += " (" + f.Trouble + ")"
			}
			line += " "
		}
		lines = append(lines, fmt.Sprint(time.Since(start), ": ", strings.TrimSpace(line)))
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return func() string {
		settle.Wait()
		mu.Lock()
		defer mu.Unlock()
		text := strings.ReplaceAll(strings.Join(lines, "\n"), uniquePrefix, "manual:///")
		lines = nil
		return text
	}, stop
}

func expect(t *testing.T, take func() string, want string) {
	t.Helper()
	if got := take(); got != want {
		t.Errorf("got states %q, want %q", got, want)
	}
}

func TestFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		take, _ := follow(t, "failover:///manual:///east,manual:///west?failoverTimeout=12s")
		east, west := manualSources["east"], manualSources["west"]
		time.Sleep(time.Second)
		_ = west.Update(answerOf("10.0.0.2:1"))
		expect(t, take, "")
		time.Sleep(11 * time.Second)
		expect(t, take, "12s: manual:///west=10.0.0.2:1")
		_ = east.Update(answerOf("10.0.0.1:1"))
		expect(t, take, "12s: manual:///east=10.0.0.1:1 manual:///west=10.0.0.2:1")
		west.Fail(errors.New("gone"))
		expect(t, take, "12s: manual:///east=10.0.0.1:1 manual:///west=10.0.0.2:1 (gone)")
		_ = east.Update(answerOf("10.0.0.3:1"))
		expect(t, take, "12s: manual:///east=10.0.0.3:1 manual:///west=10.0.0.2:1 (gone)")
		inner := new(manualSource)
		east.Mechanisms([]discovery.Mechanism{{Name: "inner", Source: inner}})
		_ = inner.Update(answerOf("10.0.0.4:1"))
		expect(t, take, "12s: manual:///east/inner=10.0.0.4:1 manual:///west=10.0.0.2:1 (gone)")
	})
}

// A source that has sent a list can still fail, or lose its server.
func TestFollowReportsProblemsOfList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		take, _ := follow(t, "failover:///manual:///east,manual:///west")
		east, inner := manualSources["east"], new(manualSource)
		east.Mechanisms([]discovery.Mechanism{{Name: "inner", Source: inner}})
		east.Unconfirmed(errors.New("server lost"), time.Now())
		expect(t, take, "")
		_ = manualSources["west"].Update(answerOf("10.0.0.2:1"))
		_ = inner.Update(answerOf("10.0.0.1:1"))
		const found = "manual:///east/inner=10.0.0.1:1 manual:///west=10.0.0.2:1"
		expect(t, take, "0s: manual:///east: server lost "+found)
		east.Unconfirmed(nil, time.Time{})
		expect(t, take, "0s: "+found)
		manualSources["west"].Fail(errors.New("gone"))
		east.Fail(errors.New("invalid list"))
		expect(t, take, "0s: "+found+" (gone)\n0s: manual:///east: invalid list "+found+" (gone)")
	})
}

func TestFollowReportsReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		take, _ := follow(t, "manual:///east")
		manualSources["east"].Trying("connecting to 10.0.0.9:1")
		time.Sleep(time.Second)
		expect(t, take, "200ms: manual: no answer yet: connecting to 10.0.0.9:1")
		manualSources["east"].Fail(errors.New("no such service"))
		expect(t, take, "1s: manual: no such service")
	})
}

// The callback must not be called after stop has returned. It may itself call stop.
func TestFollowStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		take, stop := follow(t, "manual:///east")
		_ = manualSources["east"].Update(answerOf("10.0.0.1:1"))
		expect(t, take, "0s: =10.0.0.1:1")
		stop()
		_ = manualSources["east"].Update(answerOf("10.0.0.2:1"))
		expect(t, take, "")
		if manualSources["east"].openCount.Load() != 0 {
			t.Error("a source is open after stop")
		}

		clear(manualSources)
		var n atomic.Int32
		targetCount++
		stop, err := join.Follow(fmt.Sprintf("manual://%d/west", targetCount), options.Program{}, func(join.State) { n.Add(1); stop() })
		if err != nil {
			t.Fatal(err)
		}
		_ = manualSources["west"].Update(answerOf("10.0.0.1:1"))
		_ = manualSources["west"].Update(answerOf("10.0.0.2:1"))
		settle.Wait()
		if n.Load() != 1 || manualSources["west"].openCount.Load() != 0 {
			t.Errorf("%d states after a stop inside the first, %d sources open", n.Load()-1, manualSources["west"].openCount.Load())
		}
	})
}

func TestFollowInvalidTarget(t *testing.T) {
	for target, want := range map[string]string{
		"manual:///east?nosuch=1":        `has the unknown parameter "nosuch"`,
		"manual:///east?failoverTimeout": "must have exactly one value for failoverTimeout",
		"manual:///%zz":                  "does not parse",
		"nosuch:///east":                 `no resolver is registered for scheme "nosuch"`,
	} {
		if _, err := join.Follow(target, options.Program{}, func(join.State) {}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Follow(%s) = %v, want %q", target, err, want)
		}
	}
}
