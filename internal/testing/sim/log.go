package sim

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// Log is what happened in a world, in order. It is what one reads of a run that broke
// a rule. It may be used from any goroutine.
type Log struct {
	mu    sync.Mutex
	begin time.Time
	lines []string
	// broken are the rules that were broken, at most maxBroken of them.
	broken []string
	// repeated is what was said last by Repeat, and times how often.
	repeated string
	times    int
}

// maxBroken is how many broken rules are kept: the first ones tell most.
const maxBroken = 20

func newLog() *Log { return &Log{begin: time.Now()} }

// Event adds a line.
func (l *Log) Event(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.add("", format, args...)
}

// Repeat adds a line the first time that what is said in a row, and counts the others.
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

// Break adds a line that says which rule was broken, and how.
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

// Broken returns the rules that were broken.
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

// Len returns how many lines there are.
func (l *Log) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.lines) + l.times
}
