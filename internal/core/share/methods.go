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

// methods has the usual latency of all calls, and that of each method that is called without a
// deadline. There are at most 64. A further method replaces the one that has not been called for
// the longest time, if that is a minute; until then, its calls count as streams.
type methods struct {
	usual latency
	table map[string]*method
}

type method struct {
	usual  latency
	recent [8]time.Duration // of the last good answers, a ring
	next   int
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

// The methods of a nil method are those of a call with a deadline.

// learn learns from the eighth good answer on, and learns down what eight in a row were quicker than:
// short streams end first, and do not make the long ones of the same method late.
func (m *method) learn(took, elapsed time.Duration) {
	if m == nil {
		return
	}
	m.recent[m.next%len(m.recent)] = took
	if m.next++; m.next < len(m.recent) {
		return
	}
	m.usual.learn(max(took, min(slices.Max(m.recent[:]), time.Duration(m.usual))), elapsed)
}

func (m *method) isStream() bool { return m.usual == 0 || time.Duration(m.usual) > longestCall }

// budget is the time that a call without a deadline should take, or 0 for a stream.
func (m *method) budget() time.Duration {
	if m == nil || m.isStream() {
		return 0
	}
	return max(leastBudget, budgetFactor*time.Duration(m.usual))
}
