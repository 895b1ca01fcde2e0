package join

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// Message is an update, an error or a notice for the channel.
type Message struct {
	Kind MessageKind
	Text string // for Report: the reason why there is no endpoint; for Await: what calls wait for
	Name string
}

type MessageKind int

const (
	Nothing MessageKind = iota
	Await               // calls wait for a source, and nothing has been sent yet
	Report              // no mechanism has answered, and at least one has failed: calls fail
	Send                // an update with the mechanisms in use (see Status.IsInUse); at least one has answered
)

// Next returns the next message for the channel. After each batch of events, call Next until it
// returns a message of kind Nothing, and Delivered after each other message. We wait for the end of
// the batch so that simultaneous events result in one message.
func (c *Core) Next() Message {
	if !c.changed || c.closed || c.startingCount > 0 {
		return Message{}
	}
	c.changed = false
	list := c.inUse()
	first := slices.IndexFunc(list, func(m *mechanism) bool { return m.Phase != Failed })
	waits := first >= 0 && list[first].Phase == Outstanding && !c.isOver(c.firstWait)
	switch {
	case c.hasSent || !waits && hasPhase(list, Answered): // answers stay in use, even if all sources have failed
		c.hasSent = true
		return Message{Kind: Send}
	case !waits && hasPhase(list, Failed):
		c.lastAwait = Message{}
		if len(list) == 1 && c.list[0].Name == "" {
			return Message{Kind: Report, Name: list[0].Name, Text: list[0].Failure.Text}
		}
		return Message{Kind: Report, Text: noAnswerText(list)}
	}
	// A call whose deadline expires during this wait shows the text in its error.
	overdue := slices.IndexFunc(list, func(m *mechanism) bool { return m.Phase == Outstanding && c.isOver(m.waits.calls) })
	if overdue < 0 {
		return Message{}
	}
	m := Message{Kind: Await, Name: list[overdue].Name, Text: list[overdue].waitText()}
	if m == c.lastAwait {
		return Message{}
	}
	c.lastAwait = m
	return m
}

func noAnswerText(list []*mechanism) string {
	const maxCauses = 4
	var causes []string
	for _, m := range list[:min(len(list), maxCauses)] {
		causes = append(causes, m.Name+": "+cmp.Or(m.Failure.Text, m.waitText()))
	}
	if more := len(list) - maxCauses; more > 0 {
		causes = append(causes, "and "+strconv.Itoa(more)+" more")
	}
	return "no entry has an address: " + strings.Join(causes, "; ")
}

// Delivered is called after each message. If the channel has not accepted it, we request a
// re-resolution from each source whose answer was in the update, except notified, which knows of
// the refusal in another way. No source gets a second request before the channel has accepted an
// update.
//
// The result refused means that the channel refused endpoints that looked usable. It is false if
// the update contained a mechanism without usable addresses, which explains the refusal.
func (c *Core) Delivered(accepted bool, notified ID) (refused bool, actions []Action) {
	list := c.inUse()
	explained := slices.ContainsFunc(list, func(m *mechanism) bool { return m.Phase == Failed || m.Answer.Why != "" })
	if c.lastRefused = !c.closed && !accepted && !explained; !c.lastRefused {
		for _, m := range list {
			m.refusalReported = m.refusalReported && !accepted
		}
		return false, nil
	}
	for _, m := range list {
		if m.Phase != Answered {
			continue // the refused update contained no answer of this mechanism
		}
		if m.ID != notified && !m.refusalReported {
			c.requestResolution(m)
		}
		m.refusalReported = true
	}
	return true, c.takeActions()
}
