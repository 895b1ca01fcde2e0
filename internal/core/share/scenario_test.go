package share_test

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/understudy-lb/understudy/internal/core/share"
)

// TestScenarios runs the files in testdata, one for each row of the table of shares. A scenario
// begins with a line `new name`, with the options last and ramp=8s. Its directives are:
//
//	calls 20 good every=50ms   calls are offered, and end with this result if they are taken:
//	                           good, partial, refused, unavailable, expired (at the deadline),
//	                           failed, cancelled, or open if they do not end
//	nobody 5 good every=1s     calls that no priority would take are offered as probes
//	untimed 5 failed           untimed calls, as long as the view allows them
//	end 2 good                 the oldest open calls end
//	advance 10s                time passes
//	last, not-last             no READY priority is below this one, or one is
//	returned 5s                its connections come back after this time
//	view                       shows what the picker keeps
//
// The options of calls are took=50ms, deadline=1s (0s for none), method=/a and at=a for the
// endpoint. Random numbers are spread evenly. The output has the falls of the share, its returns
// from 0, who is to blame, and how many calls were taken.
func TestScenarios(t *testing.T) {
	datadriven.Walk(t, "testdata/shares", func(t *testing.T, path string) {
		var s *stage
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd == "new" {
				s = newStage(t, d)
				return ""
			}
			s.drive(t, d)
			s.log("share %s", shown(s.fraction()))
			return s.take()
		})
	})
}

type stage struct {
	share     *share.Share
	now       time.Duration
	draws     int
	pending   []*pending // in the order of their ends
	open      []*pending
	endpoints map[string]*share.Endpoint
	before    float64
	lines     []string
}

type pending struct {
	call   share.Call
	at     time.Duration
	result share.Result
	name   string
}

var results = map[string]share.Result{
	"good": share.Good, "partial": share.Partial, "refused": share.Refused, "unavailable": share.Unavailable,
	"lost": share.Lost, "expired": share.Expired, "failed": share.Failed, "cancelled": share.Cancelled,
}

func newStage(t *testing.T, d *datadriven.TestData) *stage {
	config := share.Config{Uneven: d.HasArg("uneven")}
	if d.HasArg("ramp") {
		config.Ramp = duration(t, d, "ramp", 0)
	}
	s := &stage{share: share.New(time.Minute, config), now: time.Minute, endpoints: map[string]*share.Endpoint{}, before: 1}
	s.share.SetLast(s.now, d.HasArg("last"))
	return s
}

func duration(t *testing.T, d *datadriven.TestData, key string, otherwise time.Duration) time.Duration {
	var text string
	if !d.MaybeScanArgs(t, key, &text) {
		return otherwise
	}
	v, err := time.ParseDuration(text)
	if err != nil {
		d.Fatalf(t, "%v", err)
	}
	return v
}

func (s *stage) drive(t *testing.T, d *datadriven.TestData) {
	first := ""
	if len(d.CmdArgs) > 0 {
		first = d.CmdArgs[0].Key
	}
	n, _ := strconv.Atoi(first)
	switch d.Cmd {
	case "calls":
		s.calls(t, d, n, func() bool { s.draws++; return s.share.Take(s.now, math.Mod(float64(s.draws)*0.618034, 1)) })
	case "nobody":
		s.calls(t, d, n, func() bool { return s.share.Probe(s.now) })
	case "untimed":
		endpoint := ""
		d.MaybeScanArgs(t, "at", &endpoint)
		s.untimed(n, endpoint, results[d.CmdArgs[1].Key])
	case "end":
		for range n {
			s.end(s.open[0], results[d.CmdArgs[1].Key])
			s.open = s.open[1:]
		}
	case "advance":
		by, err := time.ParseDuration(first)
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		s.advance(by)
	case "last", "not-last":
		s.share.SetLast(s.now, d.Cmd == "last")
	case "returned":
		absent, _ := time.ParseDuration(first)
		s.share.Returned(s.now, absent)
	case "view":
		v, standing := s.share.View(), s.share.Standing()
		s.log("free %v, one in %d timed, watch %v, wanted %v, failing %v", v.Free, v.Every, v.Watch, standing.Wanted, standing.Fails)
	default:
		d.Fatalf(t, "unknown directive %s", d.Cmd)
	}
	s.changes()
}

func (s *stage) calls(t *testing.T, d *datadriven.TestData, n int, take func() bool) {
	every, took, deadline := duration(t, d, "every", 50*time.Millisecond), duration(t, d, "took", 50*time.Millisecond), duration(t, d, "deadline", time.Second)
	method, endpoint, how, taken := "", "", d.CmdArgs[1].Key, 0
	d.MaybeScanArgs(t, "method", &method)
	d.MaybeScanArgs(t, "at", &endpoint)
	if how == "expired" {
		took = deadline
	}
	for range n {
		if take() {
			if taken++; s.fraction() == 0 {
				s.log("at %v: probe", s.now-time.Minute)
			}
			p := &pending{call: s.share.Begin(s.now, deadline, method, s.endpoint(endpoint)), at: s.now + took, result: results[how], name: endpoint}
			if how == "open" {
				s.open = append(s.open, p)
			} else {
				i, _ := slices.BinarySearchFunc(s.pending, p, func(a, b *pending) int { return int(a.at - b.at - 1) })
				s.pending = slices.Insert(s.pending, i, p)
			}
		}
		s.changes()
		s.advance(every)
	}
	s.log("taken %d of %d", taken, n)
}

func (s *stage) endpoint(name string) *share.Endpoint {
	if name == "" {
		return nil
	}
	if s.endpoints[name] == nil {
		s.endpoints[name] = &share.Endpoint{}
	}
	return s.endpoints[name]
}

func (s *stage) untimed(n int, name string, r share.Result) {
	for range n {
		if v := s.share.View(); v.Free {
			s.end(&pending{call: share.Untimed(v.Stamp, s.endpoint(name)), name: name}, r)
		} else {
			s.log("not free")
		}
		s.changes()
	}
}

func (s *stage) advance(by time.Duration) {
	end := s.now + by
	for len(s.pending) > 0 && s.pending[0].at <= end {
		p := s.pending[0]
		s.pending = s.pending[1:]
		s.now = p.at
		s.end(p, p.result)
	}
	s.now = end
}

func (s *stage) end(p *pending, r share.Result) {
	switch blame := s.share.End(s.now, p.call, r); {
	case blame == share.Late:
		s.log("at %v: late because of endpoint %s", s.now-time.Minute, p.name)
	case blame == share.FullNow && p.name != "":
		s.log("at %v: expired, and not because of endpoint %s", s.now-time.Minute, p.name)
	}
	s.changes()
}

func (s *stage) fraction() float64 {
	f, _ := s.share.Fraction()
	return f
}

func (s *stage) changes() {
	f, cause := s.share.Fraction()
	depth := s.share.Standing().Depth
	if (f == 0) != (depth == share.Tripped) || (f == 1) != (depth == share.Whole) || (f >= 0.5) != (depth <= share.Part) {
		s.log("a share of %s, but depth %d", shown(f), depth)
	}
	if f < s.before {
		s.log("at %v: %s to %s, %v", s.now-time.Minute, shown(s.before), shown(f), cause)
	} else if s.before == 0 && f > 0 {
		s.log("at %v: back at %s", s.now-time.Minute, shown(f))
	}
	s.before = f
}

func shown(f float64) string { return strconv.FormatFloat(math.Round(f*1000)/1000, 'f', -1, 64) }

func (s *stage) log(format string, args ...any) {
	s.lines = append(s.lines, fmt.Sprintf(format, args...))
}

func (s *stage) take() string {
	text := strings.Join(s.lines, "\n") + "\n"
	s.lines = nil
	return text
}
