package serve

import (
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/understudy-lb/understudy/internal/printable"
)

type limited struct {
	limit string // the command line flag that sets the limit
	text  string
}

func (l *limited) Error() string { return fmt.Sprintf("%s (--%s)", l.text, l.limit) }

func tooMuch(limit string, n int, what string, most int) *limited {
	return &limited{limit, fmt.Sprintf("%d %s, want at most %d", n, what, most)}
}

// refusal counts how often clients have exceeded one limit.
type refusal struct {
	count, logged int // the number so far, and the number when it was last logged
	at            time.Time
}

func (c *clients) refuse(s *client, beyond *limited) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.end(s, beyond)
}

func (c *clients) end(s *client, beyond *limited) error {
	c.refused(s.address, s.node, beyond)
	s.end(beyond)
	return beyond
}

func (c *clients) refusedConnection(address net.Addr) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refused(address.String(), "", tooMuch("max-connections", c.limits.Connections+1, "connections", c.limits.Connections))
}

// refused counts a refusal, and logs it at most once a second for each limit.
func (c *clients) refused(address, node string, beyond *limited) {
	r := c.refusals[beyond.limit]
	if r == nil {
		r = new(refusal)
		c.refusals[beyond.limit] = r
	}
	r.count++
	if now := time.Now(); now.Sub(r.at) >= time.Second {
		c.log.Warn("client refused", "client", address, "node", node, "error", beyond.Error(), "times", r.count-r.logged)
		r.at, r.logged = now, r.count
	}
}

// rejects records a NACK. It logs at most ten NACKs of a stream per minute, and none with the same
// reason as the last one that was logged for the type.
func (c *clients) rejects(s *client, r request, log *slog.Logger) {
	reason := c.text(r.problem.GetMessage())
	if before, known := s.rejected[r.typeURL]; known && before == reason || !s.nacks.allows(time.Now()) {
		c.repeated++
		return
	}
	s.rejected[r.typeURL] = reason
	log.Warn("client NACK", "names", c.some(r.names), "nonce", r.nonce, "version", c.text(r.version), "reason", reason)
}

type window struct {
	begin time.Time
	count int
}

// allows counts an event, and reports whether it is among the first ten of a minute.
func (w *window) allows(now time.Time) bool {
	if now.Sub(w.begin) >= time.Minute {
		*w = window{begin: now}
	}
	w.count++
	return w.count <= 10
}

// text makes text from a client safe to log, and shortens it.
func (c *clients) text(s string) string { return printable.Line(s, c.limits.Logged) }

// some returns the names for the log. They are formatted only if the line is logged.
func (c *clients) some(names []string) slog.LogValuer { return list{c, names} }

type list struct {
	clients *clients
	names   []string
}

const maxListed = 20

func (l list) LogValue() slog.Value {
	var all []string
	for _, name := range l.names[:min(len(l.names), maxListed)] {
		all = append(all, l.clients.text(name))
	}
	if more := len(l.names) - len(all); more > 0 {
		all = append(all, fmt.Sprintf("and %d more", more))
	}
	return slog.AnyValue(all)
}
