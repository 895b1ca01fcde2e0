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
func addresses(a *discovery.Answer) (list []string) {
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
				list = append(list, text)
			}
		}
	}
	for _, e := range a.Resolved {
		for _, address := range e.Addresses {
			list = append(list, address.Addr)
		}
	}
	return list
}

// Record returns a receiver that records all reports, and accepts or refuses answers like a
// channel. take returns the reports since its last call. Both may be used concurrently.
func Record() (r *discovery.Receiver, take func() []Told) {
	keep := &recorder{}
	return keep.receiver(), keep.take
}

type recorder struct {
	mu      sync.Mutex
	reports []Told
}

func (r *recorder) add(t Told) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reports = append(r.reports, t)
}

func (r *recorder) take() []Told {
	r.mu.Lock()
	defer r.mu.Unlock()
	reports := r.reports
	r.reports = nil
	return reports
}

func (r *recorder) receiver() *discovery.Receiver {
	return new(discovery.Receiver).With(discovery.Hooks{
		Update: func(a discovery.Answer) error {
			r.add(Told{Answer: &a})
			return checkRules(&a)
		},
		Parts:    func(mechanisms []discovery.Mechanism) { r.add(Told{Parts: mechanisms}) },
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

// checkRules returns an error if an answer breaks a rule of discovery.Answer.
func checkRules(a *discovery.Answer) error {
	if err := topology.CheckNotEmpty(a); err != nil {
		return err
	}
	_, err := new(topology.Translator).Translate(a)
	return err
}
