package sim

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// Log records the events of a world in order, so that they can be read after a rule was broken. It
// is safe for concurrent use.
type Log struct {
	mu    sync.Mutex
	begin time.Time
	lines []string
	// broken holds the reports of broken rules, at most maxBroken of them.
	broken []string
	// repeated is the last text passed to Repeat, and times is how often it occurred.
	repeated string
	times    int
}

// maxBroken limits the number of broken rules that are kept.
const maxBroken = 20

func newLog() *Log { return &Log{begin: time.Now()} }

// Event adds a line.
func (l *Log) Event(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.add("", format, args...)
}

// Repeat adds a line if what differs from the previous call, and otherwise counts a repetition.
func (l *Log) Repeat(what, format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if what != l.repeated {
		l.add("", what+"; "+format, args...)
		l.repeated = what
		return
	}
	l.times++
}

// Break adds a line about a broken rule.
func (l *Log) Break(rule, format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	line := l.add("BROKEN "+rule+": ", format, args...)
	if len(l.broken) < maxBroken {
		l.broken = append(l.broken, line)
	}
}

func (l *Log) add(prefix, format string, args ...any) string {
	if l.times > 0 {
		l.lines = append(l.lines, fmt.Sprintf("%14s   and %d more of these", "", l.times))
	}
	l.repeated, l.times = "", 0
	line := fmt.Sprintf("%14.6fs  %s%s", time.Since(l.begin).Seconds(), prefix, fmt.Sprintf(format, args...))
	l.lines = append(l.lines, line)
	return line
}

// Broken returns the broken rules.
func (l *Log) Broken() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.broken...)
}

// String returns all lines.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, "\n") + "\n"
}

// Len returns the number of lines.
func (l *Log) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.lines) + l.times
}
