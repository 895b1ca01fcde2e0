package share

import (
	"slices"
	"time"
)

const (
	mostMethods  = 64
	forgotten    = time.Minute // without a call, a method may be replaced
	leastBudget  = time.Second
	budgetFactor = 20          // times the usual latency
	longestCall  = time.Second // a method that takes longer is a stream
)

// We learn the usual latency of all calls together, and that of each method that is called without
// a deadline: at most 64. A further method replaces the one that has not been called for the
// longest time, if that is a minute; until then, its calls count as streams.
type methods struct {
	usual latency
	table map[string]*method
}

type method struct {
	usual  latency
	recent [8]time.Duration // of the last good answers, a ring
	next   int
	open   int64 // number of open calls
	began  int64 // the sum of the times at which they began, in milliseconds
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

// For calls with a deadline, the method is nil.

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

// We learn from the eighth good answer on, and learn down what eight in a row were quicker than. If
// the calls that are open are older than the answered one became, they count: the short streams of
// a method end first, and must not make its long ones late.
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

// A call without a deadline should take no longer than this. 0 is for streams.
func (m *method) budget() time.Duration {
	if m == nil || m.isStream() {
		return 0
	}
	return max(leastBudget, budgetFactor*time.Duration(m.usual))
}
