package shell

import (
	"sync/atomic"

	"google.golang.org/grpc/balancer"
)

// Record counts the calls that were given to one endpoint. All who want to know share
// one record. It has one Done for all calls, so counting a call allocates nothing. It is
// safe for concurrent use.
type Record struct {
	started, ended, failed atomic.Uint64
	done                   func(balancer.DoneInfo)
}

// NewRecord returns a record of no calls.
func NewRecord() *Record {
	r := &Record{}
	r.done = func(info balancer.DoneInfo) {
		if info.Err != nil {
			r.failed.Add(1)
		}
		r.ended.Add(1)
	}
	return r
}

// Calls returns how many calls have started, how many of them have ended, and how many of
// those with an error.
func (r *Record) Calls() (started, ended, failed uint64) {
	failed, ended = r.failed.Load(), r.ended.Load() // in this order, so that failed ≤ ended ≤ started
	return r.started.Load(), ended, failed
}

// Recorded is a picker whose calls are recorded.
type Recorded struct {
	balancer.Picker
	Record *Record
}

// Picks returns how many calls were given to the endpoint, also by other pickers.
func (p *Recorded) Picks() uint64 { return p.Record.started.Load() }

// Pick picks, and records the call.
func (p *Recorded) Pick(info balancer.PickInfo) (balancer.PickResult, error) {
	result, err := p.Picker.Pick(info)
	if err != nil {
		return result, err
	}
	p.Record.started.Add(1)
	if own := result.Done; own != nil {
		result.Done = func(info balancer.DoneInfo) {
			p.Record.done(info)
			own(info)
		}
		return result, nil
	}
	result.Done = p.Record.done
	return result, nil
}
