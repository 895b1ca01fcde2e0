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
// the same Done function, so counting does not allocate. It is safe for concurrent use.
type Record struct {
	started, ended, failed atomic.Uint64
	recent                 [slots]slot
	done                   func(balancer.DoneInfo)
}

// A slot counts the calls of two seconds. We need one more, since the latest interval is
// incomplete.
const (
	slotSeconds = 2
	slots       = RecentSeconds/slotSeconds + 1
)

// A slot may miss a call that ends while we reuse it for a new interval.

type slot struct {
	number        atomic.Int64 // number of the two-second interval since the Unix epoch
	ended, failed atomic.Uint32
	codes         atomic.Uint32 // bit n is set if a call has failed with status code n
}

// RecentSeconds is the maximum number of seconds that Record.Recent accepts.
const RecentSeconds = 10

// Recent counts the calls that ended in the last few seconds.
type Recent struct {
	Ended  uint64
	Failed uint64 // calls that ended with one of the failureCodes
	codes  uint32
}

func (r *Recent) Add(other Recent) {
	r.Ended += other.Ended
	r.Failed += other.Failed
	r.codes |= other.codes
}

// Codes returns the status codes of the failures, in numerical order.
func (r Recent) Codes() (all []codes.Code) {
	for remaining := r.codes; remaining != 0; remaining &= remaining - 1 {
		all = append(all, codes.Code(bits.TrailingZeros32(remaining))) //nolint:gosec // at most 15
	}
	return all
}

// Bit n is status code n. These codes indicate a failing backend; others, such as NOT_FOUND, are
// normal answers.
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

// Recent counts the calls that ended in the given number of seconds before now, at most
// RecentSeconds. The precision is two seconds.
func (r *Record) Recent(now time.Time, seconds int64) (recent Recent) {
	number := now.Unix() / slotSeconds
	for i := range r.recent {
		if s := &r.recent[i]; number-s.number.Load() < seconds/slotSeconds {
			recent.Add(Recent{uint64(s.ended.Load()), uint64(s.failed.Load()), s.codes.Load()})
		}
	}
	return recent
}

// Calls returns how many calls have started, ended, and ended with an error.
func (r *Record) Calls() (started, ended, failed uint64) {
	// Other goroutines may count calls at the same time. This order ensures failed ≤ ended ≤
	// started.
	failed, ended = r.failed.Load(), r.ended.Load()
	return r.started.Load(), ended, failed
}

// Recorded is a picker that records its calls.
type Recorded struct {
	balancer.Picker
	Record *Record
}

// Picks returns the number of calls to the endpoint, including calls through other pickers.
func (p *Recorded) Picks() uint64 { return p.Record.started.Load() }

func (p *Recorded) Pick(info balancer.PickInfo) (balancer.PickResult, error) {
	result, err := p.Picker.Pick(info)
	if err != nil {
		return result, err
	}
	return p.Record.Begin(result), nil
}

// Begin counts a call, and makes its end count.
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
