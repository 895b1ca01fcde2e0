package shell

import (
	"math/bits"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Record counts the calls to an endpoint. All users of the endpoint share one Record, and all calls
// share the same Done function, so this doesn't allocate. It is safe for concurrent use.
type Record struct {
	started, ended, failed atomic.Uint64
	recent                 [slots]slot
	done                   func(balancer.DoneInfo)
}

// A slot covers two seconds. We need one extra because the latest one is incomplete.
const (
	slotSeconds = 2
	slots       = RecentSeconds/slotSeconds + 1
)

// A call that ends just as we reuse a slot for a new interval may be missed.

type slot struct {
	number        atomic.Int64 // number of the two-second interval since the Unix epoch
	ended, failed atomic.Uint32
	codes         atomic.Uint32 // bit n is set if any call failed with status code n
}

const RecentSeconds = 10

type Recent struct {
	Ended  uint64
	Failed uint64 // calls that ended with one of failureCodes
	codes  uint32
}

func (r *Recent) Add(other Recent) {
	r.Ended += other.Ended
	r.Failed += other.Failed
	r.codes |= other.codes
}

func (r Recent) Codes() (all []codes.Code) {
	for remaining := r.codes; remaining != 0; remaining &= remaining - 1 {
		all = append(all, codes.Code(bits.TrailingZeros32(remaining))) //nolint:gosec // at most 15
	}
	return all
}

// failureCodes indicate that the backend is failing (bit n is status code n). Others, e.g.
// NOT_FOUND, are perfectly normal answers.
const failureCodes = 1<<codes.Unavailable | 1<<codes.DeadlineExceeded | 1<<codes.DataLoss |
	1<<codes.Internal | 1<<codes.Unknown | 1<<codes.ResourceExhausted

func NewRecord() *Record {
	r := &Record{}
	r.done = func(info balancer.DoneInfo) {
		if j, ok := info.Err.(*Judged); ok { //nolint:errorlint // never wrapped
			info.Err = j.Real
		}
		if info.Err != nil {
			r.failed.Add(1)
		}
		r.ended.Add(1)
		r.recordEnd(info.Err)
	}
	return r
}

func (r *Record) recordEnd(err error) {
	number := time.Now().Unix() / slotSeconds
	s := &r.recent[number%slots]
	if previous := s.number.Load(); previous != number && s.number.CompareAndSwap(previous, number) {
		s.ended.Store(0)
		s.failed.Store(0)
		s.codes.Store(0)
	}
	s.ended.Add(1)
	if err == nil {
		return
	}
	if code := status.Code(err); failureCodes&(1<<code) != 0 {
		s.failed.Add(1)
		s.codes.Or(1 << code)
	}
}

// Recent counts the calls that ended in the last seconds before now, up to RecentSeconds. It's
// accurate to two seconds.
func (r *Record) Recent(now time.Time, seconds int64) (recent Recent) {
	number := now.Unix() / slotSeconds
	for i := range r.recent {
		if s := &r.recent[i]; number-s.number.Load() < seconds/slotSeconds {
			recent.Add(Recent{uint64(s.ended.Load()), uint64(s.failed.Load()), s.codes.Load()})
		}
	}
	return recent
}

// Calls returns how many calls have started, how many have ended, and how many of those with an
// error.
func (r *Record) Calls() (started, ended, failed uint64) {
	// We read these in the opposite order of counting, so that failed ≤ ended ≤ started even if
	// calls are counted concurrently.
	failed, ended = r.failed.Load(), r.ended.Load()
	return r.started.Load(), ended, failed
}

type Recorded struct {
	balancer.Picker
	Record *Record
}

func (p *Recorded) Picks() uint64 { return p.Record.started.Load() }

func (p *Recorded) Pick(info balancer.PickInfo) (balancer.PickResult, error) {
	result, err := p.Picker.Pick(info)
	if err != nil {
		return result, err
	}
	return p.Record.Begin(result), nil
}

func (r *Record) Begin(result balancer.PickResult) balancer.PickResult {
	r.started.Add(1)
	pickerDone := result.Done
	if pickerDone == nil {
		result.Done = r.done
		return result
	}
	result.Done = func(info balancer.DoneInfo) {
		r.done(info)
		pickerDone(info)
	}
	return result
}
