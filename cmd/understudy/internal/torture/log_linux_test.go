//go:build torture

package torture

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
)

// eventLog records the events of a test run. It is safe for concurrent use.
type eventLog struct {
	mu       sync.Mutex
	begin    time.Duration
	lines    []string
	broken   []string
	repeated map[string]int
}

const maxBroken = 20

// maxRepeats limits how often the same text is written.
const maxRepeats = 30

func newLog() *eventLog { return &eventLog{begin: now(), repeated: make(map[string]int)} }

func (l *eventLog) event(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.add(fmt.Sprintf(format, args...))
}

func (l *eventLog) eventRepeated(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.repeated[text]++; l.repeated[text] <= maxRepeats {
		l.add(text)
	}
}

func (l *eventLog) ruleBroken(rule, format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	line := l.add("BROKEN " + rule + ": " + fmt.Sprintf(format, args...))
	if len(l.broken) < maxBroken {
		l.broken = append(l.broken, line)
	}
}

func (l *eventLog) add(text string) string {
	line := fmt.Sprintf("%10.3fs  %s", (now() - l.begin).Seconds(), text)
	l.lines = append(l.lines, line)
	return line
}

func (l *eventLog) rulesBroken() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.broken...)
}

func (l *eventLog) write(path string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := strings.Join(l.lines, "\n") + "\n"
	for line, n := range l.repeated {
		if n > maxRepeats {
			text += fmt.Sprintf("%d times: %s\n", n, line)
		}
	}
	return os.WriteFile(path, []byte(text), 0o600)
}
