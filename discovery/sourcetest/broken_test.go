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
	check    func() error
	start    func(r *discovery.Receiver, n int) discovery.Started
	startErr error
	starts   int
}

func (f *fake) Check(bool) error {
	if f.check == nil {
		return nil
	}
	return f.check()
}

func (f *fake) Start(r *discovery.Receiver) (discovery.Started, error) {
	if f.startErr != nil {
		return discovery.Started{}, f.startErr
	}
	f.starts++
	return f.start(r, f.starts), nil
}

type errorList struct {
	mu   sync.Mutex
	list []string
}

func (*errorList) Helper() {}

func (c *errorList) Errorf(format string, args ...any) {
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

func startWith(report func(*discovery.Receiver)) func(*discovery.Receiver, int) discovery.Started {
	return func(r *discovery.Receiver, _ int) discovery.Started {
		report(r)
		return discovery.Started{}
	}
}

func answerOnce(r *discovery.Receiver) { _ = r.Update(answer("10.0.0.1:1")) }

// brokenSources has a source for each rule of Run. The source breaks the rule, and Run must report
// an error that contains want.
var brokenSources = map[string]struct {
	source fake
	want   string
}{
	"Check takes its time":                    {fake{check: func() error { sleep(time.Second); return nil }, start: startWith(answerOnce)}, "Check(false) takes 1s"},
	"Start takes its time":                    {fake{start: startWith(func(r *discovery.Receiver) { sleep(time.Second); answerOnce(r) })}, "Start takes 1s"},
	"Start fails for what Check does not say": {fake{startErr: errors.New("no such service")}, `Start fails with "no such service", for which Check(false) returns nil`},
	"says nothing":                            {fake{start: startWith(func(*discovery.Receiver) {})}, "no report within 1m0s"},
	"a port of 0":                             {fake{start: startWith(func(r *discovery.Receiver) { _ = r.Update(answer("10.0.0.1:0")) })}, "an answer breaks the rules: endpoint 0"},
	"empty, and not meant":                    {fake{start: startWith(func(r *discovery.Receiver) { _ = r.Update(discovery.Answer{}) })}, "an answer breaks the rules: its answer has no endpoints"},
	"two lines":                               {fake{start: startWith(func(r *discovery.Receiver) { r.Fail(errors.New("a\nb")) })}, `a failure has the text "a\nb", want one line`},
	"Confirm of nothing":                      {fake{start: startWith((*discovery.Receiver).Confirm)}, "Confirm was called before the first answer"},
	"doubt from the future":                   {fake{start: startWith(func(r *discovery.Receiver) { answerOnce(r); r.Unconfirmed(errors.New("x"), time.Now().Add(time.Hour)) })}, "a time 1h0m0s in the future"},
	"one identity of two":                     {fake{start: startWith(sameIdentity)}, `two answers have the identity "7": [10.0.0.1:1] and [10.0.0.2:1]`},
	"an answer that changes":                  {fake{start: startWith(sendAndModify)}, "an answer was changed after it was handed over, from [10.0.0.1:1] to [10.0.0.2:1]"},
	"a text that moves": {fake{start: startWith(func(r *discovery.Receiver) {
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
		answerOnce(r)
		return discovery.Started{ResolveNow: func() { sleep(time.Second) }}
	}}, "ResolveNow takes 1s"},
	"EndpointsFailed takes its time": {fake{start: func(r *discovery.Receiver, _ int) discovery.Started {
		answerOnce(r)
		return discovery.Started{EndpointsFailed: func() { sleep(time.Second) }}
	}}, "EndpointsFailed takes 1s"},
	"Close takes its time": {fake{start: func(r *discovery.Receiver, _ int) discovery.Started {
		answerOnce(r)
		return discovery.Started{Close: func() { sleep(time.Second) }}
	}}, "Close takes 1s"},
	"confirmed in the future": {fake{start: func(r *discovery.Receiver, _ int) discovery.Started {
		answerOnce(r)
		return discovery.Started{Confirmed: func() time.Time { return time.Now().Add(time.Minute) }}
	}}, "Confirmed is 1m0s in the future"},
	"goes on after Close": {fake{start: func(r *discovery.Receiver, _ int) discovery.Started {
		answerOnce(r)
		return discovery.Started{Close: func() { time.AfterFunc(10*time.Minute, func() { answerOnce(r) }) }}
	}}, "1 reports more than 1m0s after Close, the first is: answer 10.0.0.1:1"},
	"Close waits for the receiver": {fake{start: func(r *discovery.Receiver, _ int) discovery.Started {
		done := make(chan struct{})
		go func() {
			defer close(done)
			sleep(time.Second)
			answerOnce(r)
		}()
		return discovery.Started{Close: func() { <-done }}
	}}, "Close does not return while the receiver is called"},
	"one channel alone": {fake{start: func(r *discovery.Receiver, n int) discovery.Started {
		if n == 1 {
			answerOnce(r)
		} else {
			r.Trying("waiting for the other channel")
		}
		return discovery.Started{}
	}}, "only one of two channels has an answer: the first true, the second false"},
	"two channels that are one": {fake{start: failOtherChannel()}, "after the first channel is closed, the second one fails: it is closed"},
	"started once": {fake{start: func(r *discovery.Receiver, n int) discovery.Started {
		if n == 1 {
			answerOnce(r)
		} else {
			r.Fail(errors.New("it was closed"))
		}
		return discovery.Started{}
	}}, "the source has an answer after the first start: true; after the second start: false"},
}

func sameIdentity(r *discovery.Receiver) {
	for _, address := range []string{"10.0.0.1:1", "10.0.0.2:1"} {
		a := answer(address)
		a.Identity = "7"
		_ = r.Update(a)
	}
}

func sendAndModify(r *discovery.Receiver) {
	a := answer("10.0.0.1:1")
	_ = r.Update(a)
	a.Priorities[0].Localities[0].Endpoints[0].Addresses[0] = "10.0.0.2:1"
}

func failOtherChannel() func(*discovery.Receiver, int) discovery.Started {
	var last *discovery.Receiver
	return func(r *discovery.Receiver, _ int) discovery.Started {
		last = r
		answerOnce(r)
		return discovery.Started{Close: func() { last.Fail(errors.New("it is closed")) }}
	}
}

func TestBrokenSources(t *testing.T) {
	for about, test := range brokenSources {
		t.Run(about, func(t *testing.T) {
			found := &errorList{}
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

// sleep waits on the clock of the synctest bubble in which it is called. The functions of
// brokenSources need it, because that variable is initialized outside of any bubble.
func sleep(d time.Duration) { <-time.NewTimer(d).C }
