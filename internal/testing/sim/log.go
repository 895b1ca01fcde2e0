package sim

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

type Log struct {
	mu     sync.Mutex
	begin  time.Time
	lines  []string
	broken []string
	// repeated is the key of the last Repeat, and times is how often it has come again since.
	repeated string
	times    int
}

const maxBroken = 20

func newLog() *Log { return &Log{begin: time.Now()} }

func (l *Log) Event(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.add("", format, args...)
}

// Repeat adds a line that begins with key. If the previous line had the same key, it only counts
// the repetition.
func (l *Log) Repeat(key, format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if key != l.repeated {
		l.add("", key+"; "+format, args...)
		l.repeated = key
		return
	}
	l.times++
}

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

func (l *Log) Broken() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.broken...)
}

func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, "\n") + "\n"
}

func (l *Log) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.lines) + l.times
}
