package serve

import (
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/understudy-lb/understudy/internal/text/printable"
)

type limitError struct {
	flagName string // the command line flag that sets the limit
	text     string
}

func (l *limitError) Error() string { return fmt.Sprintf("%s (--%s)", l.text, l.flagName) }

func newLimitError(flagName string, n int, description string, maximum int) *limitError {
	return &limitError{flagName, fmt.Sprintf("%d %s, want at most %d", n, description, maximum)}
}

// refusal counts how often clients have exceeded one limit.
type refusal struct {
	count, countLogged int // the number so far, and the number at the last log line
	loggedAt           time.Time
}

func (c *clients) refuse(s *clientStream, limitErr *limitError) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.endStream(s, limitErr)
}

func (c *clients) endStream(s *clientStream, limitErr *limitError) error {
	c.countRefusal(s.address, s.node, limitErr)
	s.cancel(limitErr)
	return limitErr
}

func (c *clients) refusedConnection(address net.Addr) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.countRefusal(address.String(), "", newLimitError("max-connections", c.limits.Connections+1, "connections", c.limits.Connections))
}

// countRefusal counts a refusal. It logs at most one refusal per second for each limit.
func (c *clients) countRefusal(address, node string, limitErr *limitError) {
	r := c.refusals[limitErr.flagName]
	if r == nil {
		r = new(refusal)
		c.refusals[limitErr.flagName] = r
	}
	r.count++
	if now := time.Now(); now.Sub(r.loggedAt) >= time.Second {
		c.log.Warn("client refused", "client", address, "node", node, "error", limitErr.Error(), "times", r.count-r.countLogged)
		r.loggedAt, r.countLogged = now, r.count
	}
}

// recordNACK records a NACK. It logs at most ten NACKs of a stream per minute. It does not log a
// NACK with the same reason as the last logged NACK for the type.
func (c *clients) recordNACK(s *clientStream, r request, log *slog.Logger) {
	reason := c.logText(r.errorDetail.GetMessage())
	if before, known := s.loggedReasons[r.typeURL]; known && before == reason || !s.nackLimiter.allow(time.Now()) {
		c.repeatedNACKs++
		return
	}
	s.loggedReasons[r.typeURL] = reason
	log.Warn("client NACK", "names", c.logNames(r.names), "nonce", r.nonce, "version", c.logText(r.version), "reason", reason)
}

type eventLimiter struct {
	start time.Time
	count int
}

// allow counts an event, and reports whether it is one of the first ten events of a minute.
func (w *eventLimiter) allow(now time.Time) bool {
	if now.Sub(w.start) >= time.Minute {
		*w = eventLimiter{start: now}
	}
	w.count++
	return w.count <= 10
}

// logText escapes and truncates a text from a client for the log.
func (c *clients) logText(s string) string { return printable.Line(s, c.limits.Logged) }

// logNames returns a log value for the names. The names are formatted only if the line is logged.
func (c *clients) logNames(names []string) slog.LogValuer { return nameList{c, names} }

type nameList struct {
	clients *clients
	names   []string
}

const maxListed = 20

func (l nameList) LogValue() slog.Value {
	var all []string
	for _, name := range l.names[:min(len(l.names), maxListed)] {
		all = append(all, l.clients.logText(name))
	}
	if more := len(l.names) - len(all); more > 0 {
		all = append(all, fmt.Sprintf("and %d more", more))
	}
	return slog.AnyValue(all)
}
