package sourcetest

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/topology"
)

// Told is one report of a source. Exactly one field is set, except that Since accompanies Doubt.
type Told struct {
	Answer    *discovery.Answer
	Parts     []discovery.Mechanism
	Failure   error
	Rejected  error
	Confirmed bool
	Doubt     error     // the error passed to Unconfirmed; for nil, an error with the text "over"
	Since     time.Time // the time passed to Unconfirmed
	Trying    string
}

// String describes the report in one line, such as "answer 10.0.0.1:443" or "fail: no such host".
func (t Told) String() string {
	switch {
	case t.Answer != nil:
		return strings.TrimSpace("answer " + strings.Join(addresses(t.Answer), " "))
	case t.Parts != nil:
		var names []string
		for _, p := range t.Parts {
			names = append(names, p.Name)
		}
		return "parts " + strings.Join(names, " ")
	case t.Failure != nil:
		return "fail: " + t.Failure.Error()
	case t.Rejected != nil:
		return "rejected: " + t.Rejected.Error()
	case t.Confirmed:
		return "confirm"
	case t.Doubt != nil:
		return "unconfirmed: " + t.Doubt.Error()
	}
	return "trying: " + t.Trying
}

// addresses returns the first address of each endpoint, followed by the health of an endpoint that
// is not usable.
func addresses(a *discovery.Answer) (all []string) {
	for _, p := range a.Priorities {
		for _, l := range p.Localities {
			for _, e := range l.Endpoints {
				text := "-"
				if len(e.Addresses) > 0 {
					text = e.Addresses[0]
				}
				if e.Health == discovery.Draining || e.Health == discovery.Unhealthy {
					text += fmt.Sprintf("(%v)", e.Health)
				}
				all = append(all, text)
			}
		}
	}
	for _, e := range a.Resolved {
		for _, address := range e.Addresses {
			all = append(all, address.Addr)
		}
	}
	return all
}

// Record returns a receiver that accepts and refuses answers like a channel and records all
// reports, and a function that returns the reports since its last call. Both are safe for
// concurrent use.
func Record() (r *discovery.Receiver, take func() []Told) {
	keep := &record{}
	return keep.receiver(), keep.take
}

type record struct {
	mu   sync.Mutex
	told []Told
}

func (r *record) add(t Told) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told = append(r.told, t)
}

func (r *record) take() []Told {
	r.mu.Lock()
	defer r.mu.Unlock()
	told := r.told
	r.told = nil
	return told
}

func (r *record) receiver() *discovery.Receiver {
	return new(discovery.Receiver).With(discovery.Hooks{
		Update: func(a discovery.Answer) error {
			r.add(Told{Answer: &a})
			return rules(&a)
		},
		Parts:    func(parts []discovery.Mechanism) { r.add(Told{Parts: parts}) },
		Fail:     func(err error) { r.add(Told{Failure: err}) },
		Rejected: func(err error) { r.add(Told{Rejected: err}) },
		Confirm:  func() { r.add(Told{Confirmed: true}) },
		Unconfirmed: func(err error, since time.Time) {
			if err == nil {
				err = errOver
			}
			r.add(Told{Doubt: err, Since: since})
		},
		Trying: func(text string) { r.add(Told{Trying: text}) },
	})
}

// rules returns an error if an answer breaks a rule of discovery.Answer.
func rules(a *discovery.Answer) error {
	if err := topology.CheckSome(a); err != nil {
		return err
	}
	_, err := new(topology.Translator).Translate(a)
	return err
}
