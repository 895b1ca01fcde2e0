package resolving_test

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
	"github.com/understudy-lb/understudy/internal/join"
	"github.com/understudy-lb/understudy/internal/options"
	"github.com/understudy-lb/understudy/internal/resolving"
	"github.com/understudy-lb/understudy/internal/testing/settle"
)

var manual = make(map[string]*manualSource)

type manualSource struct {
	*discovery.Receiver
	open atomic.Int32
}

func (*manualSource) Check(bool) error { return nil }

func (m *manualSource) Start(r *discovery.Receiver) (discovery.Started, error) {
	m.Receiver = settle.Receiver(r)
	m.open.Add(1)
	return discovery.Started{Close: func() { m.open.Add(-1) }}, nil
}

func init() {
	discovery.Register("manual", func(t *discovery.Target) ([]discovery.Mechanism, error) {
		s := manual[t.Endpoint()]
		if s == nil {
			s = new(manualSource)
			manual[t.Endpoint()] = s
		}
		return []discovery.Mechanism{{Source: s}}, nil
	})
}

func answerOf(address string) discovery.Answer {
	return discovery.Answer{Priorities: []discovery.Priority{{Localities: []discovery.Locality{{Endpoints: []discovery.Endpoint{{Addresses: []string{address}}}}}}}}
}

// targets is a counter that makes the target of each test unique, because equal targets share
// stored answers.
var targets int

// follow follows a target until the test ends. take returns the calls of news since the last take,
// one per line.
func follow(t *testing.T, target string) (take func() string, stop func()) {
	clear(manual)
	targets++
	own := fmt.Sprintf("manual://%d/", targets)
	target = strings.ReplaceAll(target, "manual:///", own)
	var mu sync.Mutex
	var lines []string
	begin := time.Now()
	stop, err := resolving.Follow(target, options.Program{}, func(n join.News) {
		mu.Lock()
		defer mu.Unlock()
		line := n.Why
		for _, f := range n.Found {
			line += f.Name + "="
			if f.Answer != nil {
				line += f.Answer.Priorities[0].Localities[0].Endpoints[0].Addresses[0]
			}
			if f.Trouble != "" {
				line += " (" + f.Trouble + ")"
			}
			line += " "
		}
		lines = append(lines, fmt.Sprint(time.Since(begin), ": ", strings.TrimSpace(line)))
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return func() string {
		settle.Wait()
		mu.Lock()
		defer mu.Unlock()
		text := strings.ReplaceAll(strings.Join(lines, "\n"), own, "manual:///")
		lines = nil
		return text
	}, stop
}

func expect(t *testing.T, take func() string, want string) {
	t.Helper()
	if got := take(); got != want {
		t.Errorf("got news %q, want %q", got, want)
	}
}

func TestFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		take, _ := follow(t, "failover:///manual:///east,manual:///west?failoverTimeout=3s")
		east, west := manual["east"], manual["west"]
		time.Sleep(time.Second)
		_ = west.Update(answerOf("10.0.0.2:1"))
		expect(t, take, "")
		time.Sleep(2 * time.Second)
		expect(t, take, "3s: manual:///west=10.0.0.2:1")
		_ = east.Update(answerOf("10.0.0.1:1"))
		expect(t, take, "3s: manual:///east=10.0.0.1:1 manual:///west=10.0.0.2:1")
		west.Fail(errors.New("gone"))
		expect(t, take, "3s: manual:///east=10.0.0.1:1 manual:///west=10.0.0.2:1 (gone)")
		_ = east.Update(answerOf("10.0.0.3:1"))
		expect(t, take, "3s: manual:///east=10.0.0.3:1 manual:///west=10.0.0.2:1 (gone)")
		inner := new(manualSource)
		east.Parts([]discovery.Mechanism{{Name: "inner", Source: inner}})
		_ = inner.Update(answerOf("10.0.0.4:1"))
		expect(t, take, "3s: manual:///east/inner=10.0.0.4:1 manual:///west=10.0.0.2:1 (gone)")
	})
}

func TestFollowSaysWhyThereIsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		take, _ := follow(t, "manual:///east")
		manual["east"].Trying("connecting to 10.0.0.9:1")
		time.Sleep(time.Second)
		expect(t, take, "200ms: manual: no answer yet: connecting to 10.0.0.9:1")
		manual["east"].Fail(errors.New("no such service"))
		expect(t, take, "1s: manual: no such service")
	})
}

// news must not be called after stop has returned. news itself may call stop.
func TestFollowStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		take, stop := follow(t, "manual:///east")
		_ = manual["east"].Update(answerOf("10.0.0.1:1"))
		expect(t, take, "0s: =10.0.0.1:1")
		stop()
		_ = manual["east"].Update(answerOf("10.0.0.2:1"))
		expect(t, take, "")
		if manual["east"].open.Load() != 0 {
			t.Error("a source is open after stop")
		}

		clear(manual)
		var n atomic.Int32
		targets++
		stop, err := resolving.Follow(fmt.Sprintf("manual://%d/west", targets), options.Program{}, func(join.News) { n.Add(1); stop() })
		if err != nil {
			t.Fatal(err)
		}
		_ = manual["west"].Update(answerOf("10.0.0.1:1"))
		_ = manual["west"].Update(answerOf("10.0.0.2:1"))
		settle.Wait()
		if n.Load() != 1 || manual["west"].open.Load() != 0 {
			t.Errorf("%d news after a stop inside the first, %d sources open", n.Load()-1, manual["west"].open.Load())
		}
	})
}

func TestFollowRefusesMistakes(t *testing.T) {
	for target, want := range map[string]string{
		"manual:///east?nosuch=1":        `has the unknown parameter "nosuch"`,
		"manual:///east?failoverTimeout": "must have exactly one value for failoverTimeout",
		"manual:///%zz":                  "does not parse",
		"nosuch:///east":                 `no resolver is registered for scheme "nosuch"`,
	} {
		if _, err := resolving.Follow(target, options.Program{}, func(join.News) {}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Follow(%s) = %v, want %q", target, err, want)
		}
	}
}
