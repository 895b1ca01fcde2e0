package sourcetest

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/channel/topology"
)

// Report is one report of a source. Exactly one of the fields is set, except that Since goes with
// Doubt.
type Report struct {
	Answer     *discovery.Answer
	Mechanisms []discovery.Mechanism
	Failure    error
	Rejected   error
	Confirmed  bool
	Doubt      error     // error passed to Unconfirmed; if that was nil, an error with the text "over"
	Since      time.Time // time passed to Unconfirmed
	Trying     string
}

// String describes the report in one line, e.g. "answer 10.0.0.1:443" or "fail: no such host".
func (r Report) String() string {
	switch {
	case r.Answer != nil:
		return strings.TrimSpace("answer " + strings.Join(addresses(r.Answer), " "))
	case r.Mechanisms != nil:
		var names []string
		for _, p := range r.Mechanisms {
			names = append(names, p.Name)
		}
		return "mechanisms " + strings.Join(names, " ")
	case r.Failure != nil:
		return "fail: " + r.Failure.Error()
	case r.Rejected != nil:
		return "rejected: " + r.Rejected.Error()
	case r.Confirmed:
		return "confirm"
	case r.Doubt != nil:
		return "unconfirmed: " + r.Doubt.Error()
	}
	return "trying: " + r.Trying
}

// addresses returns the first address of each endpoint. If an endpoint isn't usable, its health
// comes after the address.
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

// Record returns a receiver that records all reports, and accepts or refuses answers the way a
// channel would. take returns the reports since its last call. Both are safe for concurrent use.
func Record() (r *discovery.Receiver, take func() []Report) {
	keep := &recorder{}
	return keep.receiver(), keep.take
}

type recorder struct {
	mu      sync.Mutex
	reports []Report
}

func (r *recorder) add(report Report) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reports = append(r.reports, report)
}

func (r *recorder) take() []Report {
	r.mu.Lock()
	defer r.mu.Unlock()
	reports := r.reports
	r.reports = nil
	return reports
}

func (r *recorder) receiver() *discovery.Receiver {
	return new(discovery.Receiver).With(discovery.Hooks{
		Update: func(a discovery.Answer) error {
			r.add(Report{Answer: &a})
			return checkRules(&a)
		},
		Mechanisms: func(mechanisms []discovery.Mechanism) { r.add(Report{Mechanisms: mechanisms}) },
		Fail:       func(err error) { r.add(Report{Failure: err}) },
		Rejected:   func(err error) { r.add(Report{Rejected: err}) },
		Confirm:    func() { r.add(Report{Confirmed: true}) },
		Unconfirmed: func(err error, since time.Time) {
			if err == nil {
				err = errOver
			}
			r.add(Report{Doubt: err, Since: since})
		},
		Trying: func(text string) { r.add(Report{Trying: text}) },
	})
}

func checkRules(a *discovery.Answer) error {
	if err := topology.CheckNotEmpty(a); err != nil {
		return err
	}
	_, err := new(topology.Translator).Translate(a)
	return err
}
