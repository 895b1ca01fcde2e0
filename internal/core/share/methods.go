package share

import (
	"slices"
	"time"
)

const (
	mostMethods  = 64
	forgotten    = time.Minute // a method that isn't called for this long may be replaced
	leastBudget  = time.Second
	budgetFactor = 20          // a call may take this many times the usual latency
	longestCall  = time.Second // any method whose calls usually take longer is a stream
)

// methods learns the usual latency of all calls combined. For up to 64 methods that
// are called without a deadline, it also learns the latency of each. To make room for another one, we replace the method
// that hasn't been called for the longest time, provided that's at least a minute. Otherwise the
// new method's calls count as streams.
type methods struct {
	usual latency
	table map[string]*method
}

type method struct {
	usual  latency
	recent [8]time.Duration // ring buffer of the latencies of the last good answers
	next   int
	open   int64
	began  int64 // sum of the start times of open calls, in milliseconds
	called time.Duration
}

func (m *methods) find(now time.Duration, name string) *method {
	if found := m.table[name]; found != nil {
		found.called = now
		return found
	}
	added := &method{called: now}
	if len(m.table) >= mostMethods && !m.forget(now) {
		return added
	}
	if m.table == nil {
		m.table = make(map[string]*method)
	}
	m.table[name] = added
	return added
}

func (m *methods) forget(now time.Duration) bool {
	oldest, since := "", now-forgotten
	for name, method := range m.table {
		if method.called < since || method.called == since && (oldest == "" || name < oldest) {
			oldest, since = name, method.called
		}
	}
	if oldest == "" {
		return false
	}
	delete(m.table, oldest)
	return true
}

// The method is nil for calls with a deadline.

func (m *method) begin(now time.Duration) {
	m.open++
	m.began += now.Milliseconds()
}

func (m *method) end(began time.Duration) {
	if m != nil {
		m.open--
		m.began -= began.Milliseconds()
	}
}

// learn starts with the eighth good answer. If eight in a row were quicker than usual, we learn the
// slowest of them. Some methods have both short and long streams. The short ones end first, and we
// don't want to conclude from them that the long ones are late. So if the calls in flight are on
// average older than the answered call was, we use their age.
func (m *method) learn(now, took, elapsed time.Duration) {
	if m == nil {
		return
	}
	if m.open > 0 {
		took = max(took, now-time.Duration(m.began/m.open)*time.Millisecond)
	}
	m.recent[m.next%len(m.recent)] = took
	if m.next++; m.next < len(m.recent) {
		return
	}
	longest, usual := slices.Max(m.recent[:]), time.Duration(m.usual)
	if usual == 0 {
		usual = longest
	}
	m.usual.learn(max(took, min(longest, usual)), elapsed)
}

func (m *method) isStream() bool { return m.usual == 0 || time.Duration(m.usual) > longestCall }

// budget returns how long a call without a deadline should take at most, or 0 for streams.
func (m *method) budget() time.Duration {
	if m == nil || m.isStream() {
		return 0
	}
	return max(leastBudget, budgetFactor*time.Duration(m.usual))
}
