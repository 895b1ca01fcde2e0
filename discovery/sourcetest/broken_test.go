package sourcetest

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/understudy-lb/understudy/discovery"
)

type fake struct {
	check  func() error
	start  func(r *discovery.Receiver, n int) discovery.Started
	fails  error
	starts int
}

func (f *fake) Check(bool) error {
	if f.check == nil {
		return nil
	}
	return f.check()
}

func (f *fake) Start(r *discovery.Receiver) (discovery.Started, error) {
	if f.fails != nil {
		return discovery.Started{}, f.fails
	}
	f.starts++
	return f.start(r, f.starts), nil
}

type complaints struct {
	mu   sync.Mutex
	list []string
}

func (*complaints) Helper() {}

func (c *complaints) Errorf(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = append(c.list, fmt.Sprintf(format, args...))
}

func answer(addresses ...string) discovery.Answer {
	var l discovery.Locality
	for _, a := range addresses {
		l.Endpoints = append(l.Endpoints, discovery.Endpoint{Addresses: []string{a}})
	}
	return discovery.Answer{Priorities: []discovery.Priority{{Localities: []discovery.Locality{l}}}}
}

func says(what func(*discovery.Receiver)) func(*discovery.Receiver, int) discovery.Started {
	return func(r *discovery.Receiver, _ int) discovery.Started {
		what(r)
		return discovery.Started{}
	}
}

func well(r *discovery.Receiver) { _ = r.Update(answer("10.0.0.1:1")) }

// broken has an entry for each rule: a source that breaks the rule, and the error want that Run
// must report.
var broken = map[string]struct {
	source fake
	want   string
}{
	"Check takes its time":                    {fake{check: func() error { wait(time.Second); return nil }, start: says(well)}, "Check(false) takes 1s"},
	"Start takes its time":                    {fake{start: says(func(r *discovery.Receiver) { wait(time.Second); well(r) })}, "Start takes 1s"},
	"Start fails for what Check does not say": {fake{fails: errors.New("no such service")}, `Start fails with "no such service", for which Check(false) returns nil`},
	"says nothing":                            {fake{start: says(func(*discovery.Receiver) {})}, "no report within 1m0s"},
	"a port of 0":                             {fake{start: says(func(r *discovery.Receiver) { _ = r.Update(answer("10.0.0.1:0")) })}, "an answer breaks the rules: endpoint 0"},
	"empty, and not meant":                    {fake{start: says(func(r *discovery.Receiver) { _ = r.Update(discovery.Answer{}) })}, "an answer breaks the rules: its answer holds no endpoint"},
	"two lines":                               {fake{start: says(func(r *discovery.Receiver) { r.Fail(errors.New("a\nb")) })}, `a failure has the text "a\nb", want one line`},
	"Confirm of nothing":                      {fake{start: says((*discovery.Receiver).Confirm)}, "Confirm is called before there was an answer"},
	"doubt from the future":                   {fake{start: says(func(r *discovery.Receiver) { well(r); r.Unconfirmed(errors.New("x"), time.Now().Add(time.Hour)) })}, "confirmed until 1h0m0s from now"},
	"one identity of two":                     {fake{start: says(sameIdentity)}, `two answers have the identity "7": [10.0.0.1:1] and [10.0.0.2:1]`},
	"an answer that changes":                  {fake{start: says(changing)}, "an answer was changed after it was handed over, from [10.0.0.1:1] to [10.0.0.2:1]"},
	"a text that moves": {fake{start: says(func(r *discovery.Receiver) {
		r.Fail(errors.New("attempt 1 of :50001 failed"))
		r.Fail(errors.New("attempt 2 of :50002 failed"))
	})}, "want the same text for the same failure"},
	"no pause": {fake{start: func(r *discovery.Receiver, _ int) discovery.Started {
		done := make(chan struct{})
		go func() {
			for r.Update(answer("10.0.0.1:1")) != nil {
				select {
				case <-done:
					return
				default:
				}
			}
		}()
		return discovery.Started{Close: func() { close(done) }}
	}}, "100 answers within a minute although the channel refuses them"},
	"ResolveNow takes its time": {fake{start: func(r *discovery.Receiver, _ int) discovery.Started {
		well(r)
		return discovery.Started{ResolveNow: func() { wait(time.Second) }}
	}}, "ResolveNow takes 1s"},
	"EndpointsFailed takes its time": {fake{start: func(r *discovery.Receiver, _ int) discovery.Started {
		well(r)
		return discovery.Started{EndpointsFailed: func() { wait(time.Second) }}
	}}, "EndpointsFailed takes 1s"},
	"Close takes its time": {fake{start: func(r *discovery.Receiver, _ int) discovery.Started {
		well(r)
		return discovery.Started{Close: func() { wait(time.Second) }}
	}}, "Close takes 1s"},
	"confirmed in the future": {fake{start: func(r *discovery.Receiver, _ int) discovery.Started {
		well(r)
		return discovery.Started{Confirmed: func() time.Time { return time.Now().Add(time.Minute) }}
	}}, "Confirmed is 1m0s from now"},
	"goes on after Close": {fake{start: func(r *discovery.Receiver, _ int) discovery.Started {
		well(r)
		return discovery.Started{Close: func() { time.AfterFunc(10*time.Minute, func() { well(r) }) }}
	}}, "1 reports more than 1m0s after Close, the first is: answer 10.0.0.1:1"},
	"Close waits for the receiver": {fake{start: func(r *discovery.Receiver, _ int) discovery.Started {
		over := make(chan struct{})
		go func() {
			defer close(over)
			wait(time.Second)
			well(r)
		}()
		return discovery.Started{Close: func() { <-over }}
	}}, "Close does not return while the receiver is called"},
	"one channel alone": {fake{start: func(r *discovery.Receiver, n int) discovery.Started {
		if n == 1 {
			well(r)
		} else {
			r.Trying("waiting for the other channel")
		}
		return discovery.Started{}
	}}, "only one of two channels has an answer: the first true, the second false"},
	"two channels that are one": {fake{start: second()}, "once the first channel is closed the second one fails: it is closed"},
	"started once": {fake{start: func(r *discovery.Receiver, n int) discovery.Started {
		if n == 1 {
			well(r)
		} else {
			r.Fail(errors.New("it was closed"))
		}
		return discovery.Started{}
	}}, "it has an answer when it is first started: true; and when it is started again: false"},
}

func sameIdentity(r *discovery.Receiver) {
	for _, address := range []string{"10.0.0.1:1", "10.0.0.2:1"} {
		a := answer(address)
		a.Identity = "7"
		_ = r.Update(a)
	}
}

func changing(r *discovery.Receiver) {
	a := answer("10.0.0.1:1")
	_ = r.Update(a)
	a.Priorities[0].Localities[0].Endpoints[0].Addresses[0] = "10.0.0.2:1"
}

func second() func(*discovery.Receiver, int) discovery.Started {
	var last *discovery.Receiver
	return func(r *discovery.Receiver, _ int) discovery.Started {
		last = r
		well(r)
		return discovery.Started{Close: func() { last.Fail(errors.New("it is closed")) }}
	}
}

func TestSourcesThatBreakARule(t *testing.T) {
	for about, test := range broken {
		t.Run(about, func(t *testing.T) {
			found := &complaints{}
			for _, name := range names {
				synctest.Test(t, func(*testing.T) {
					s := test.source
					checks[name](found, &s)
				})
			}
			if !strings.Contains(strings.Join(found.list, "\n"), test.want) {
				t.Errorf("Run says\n%s\nwant\n%s", strings.Join(found.list, "\n"), test.want)
			}
		})
	}
}

// wait sleeps on the clock of the bubble in which it is called. The table that uses it is outside
// of any bubble.
func wait(d time.Duration) { <-time.NewTimer(d).C }
