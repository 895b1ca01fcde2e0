package discovery_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/understudy-lb/understudy/discovery"
)

type modelState struct {
	answer, failure, doubt string
	since                  bool
}

func (s *modelState) confirm() {
	if s.answer == "" {
		return
	}
	s.failure = ""
	if s.since {
		s.doubt, s.since = "", false
	}
}

type modelMember struct {
	mu sync.Mutex
	modelState
	started discovery.Started
	closed  bool
}

// Channels that hang at random, join late or leave must end in the state that follows from all reports of
// the source, although they may miss some of them.
func TestSharedChannelsEndInTheSameState(t *testing.T) {
	for seed := range uint64(300) {
		synctest.Test(t, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 1))
			s := &countedSource{}
			source := discovery.Shared(t.Name(), 0, s)
			var truth modelState
			var members []*modelMember
			open := func() {
				m := &modelMember{}
				hang := rand.New(rand.NewPCG(seed, uint64(len(members))))
				wait := func() {
					if hang.IntN(3) == 0 {
						time.Sleep(time.Duration(hang.IntN(30)) * time.Millisecond)
					}
				}
				locked := func(f func()) { wait(); m.mu.Lock(); defer m.mu.Unlock(); f() }
				started, err := source.Start(new(discovery.Receiver).With(discovery.Hooks{
					Update: func(a discovery.Answer) error {
						locked(func() { m.answer = a.Version; m.confirm() })
						if hang.IntN(4) == 0 {
							return errors.New("no")
						}
						return nil
					},
					Confirm: func() { locked(m.confirm) },
					Fail:    func(err error) { locked(func() { m.failure = err.Error() }) },
					Unconfirmed: func(err error, since time.Time) {
						locked(func() {
							m.doubt, m.since = fmt.Sprint(err), !since.IsZero()
							if err == nil {
								m.doubt, m.since = "", false
							}
						})
					},
				}))
				if err != nil {
					t.Fatal(err)
				}
				m.started = started
				members = append(members, m)
			}
			open()
			for i := range 60 {
				if rnd.IntN(2) == 0 {
					time.Sleep(time.Duration(rnd.IntN(10)) * time.Millisecond)
				}
				text := fmt.Sprint(i)
				switch k := rnd.IntN(10); {
				case i == 0 || k < 2:
					truth.answer = text
					truth.confirm()
					_ = s.raw.Update(discovery.Answer{Version: text})
				case k == 2:
					truth.confirm()
					s.raw.Confirm()
				case k == 3:
					truth.failure = text
					s.raw.Fail(errors.New(text))
				case k == 4:
					truth.doubt, truth.since = text, false
					s.raw.Unconfirmed(errors.New(text), time.Time{})
				case k == 5:
					truth.doubt, truth.since = text, true
					s.raw.Unconfirmed(errors.New(text), time.Now())
				case k == 6:
					truth.doubt, truth.since = "", false
					s.raw.Unconfirmed(nil, time.Time{})
				case k == 7 && len(members) < 8:
					open()
				case k == 8:
					live := 0
					for _, m := range members {
						if !m.closed {
							live++
						}
					}
					if m := members[rnd.IntN(len(members))]; !m.closed && live > 1 {
						m.closed = true
						go m.started.Close()
					}
				case k == 9:
					if m := members[len(members)-1]; !m.closed {
						m.started.ResolveNow()
					}
				}
			}
			time.Sleep(time.Hour)
			synctest.Wait()
			for i, m := range members {
				if !m.closed && m.modelState != truth {
					t.Errorf("seed %d: member %d has %+v, want %+v", seed, i, m.modelState, truth)
				}
				if !m.closed {
					m.started.Close()
				}
			}
			time.Sleep(time.Hour)
			synctest.Wait()
			if s.closeCount != 1 {
				t.Errorf("closed %d", s.closeCount)
			}
		})
		if t.Failed() {
			return
		}
	}
}
