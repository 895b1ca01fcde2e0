package join

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

type Message struct {
	Kind MessageKind
	Text string // for Report: why there are no endpoints; for Await: what calls are waiting for
	Name string
}

type MessageKind int

const (
	Nothing MessageKind = iota
	Await               // calls are waiting for a source, and nothing has been sent yet
	Report              // no mechanism has answered and at least one has failed
	Send                // an update with the mechanisms in use (see Status.IsInUse), of which at least one has answered
)

// Next returns what to send to the channel next. Call it after each batch of events until it
// returns Nothing, and call Delivered for every other message. We leave this until the end of the
// batch so that simultaneous events cause only one message.
func (c *Core) Next() Message {
	if !c.changed || c.closed || c.startingCount > 0 {
		return Message{}
	}
	c.changed = false
	list := c.inUse()
	first := slices.IndexFunc(list, func(m *mechanism) bool { return m.Phase != Failed })
	waits := first >= 0 && list[first].Phase == Outstanding && !c.isOver(c.firstWait)
	switch {
	case c.hasSent || !waits && hasPhase(list, Answered):
		c.hasSent = true
		return Message{Kind: Send}
	case !waits && hasPhase(list, Failed):
		c.lastAwait = Message{}
		if len(list) == 1 && c.list[0].Name == "" {
			return Message{Kind: Report, Name: list[0].Name, Text: list[0].Failure.Text}
		}
		return Message{Kind: Report, Text: noAnswerText(list)}
	}
	// If a call's deadline expires while we wait, its error will show this text.
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

// Delivered is called after each message. If the channel refused the update, we ask every source
// with an answer in the update to resolve again, except for notified, which already knows. We won't
// ask a source a second time until the channel has accepted an update.
//
// refused is true if the channel refused endpoints that looked usable to us. If any mechanism in
// the update had no usable addresses, that already explains the refusal, so refused is false.
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
			continue // it didn't have an answer in the refused update
		}
		if m.ID != notified && !m.refusalReported {
			c.callResolveNow(m)
		}
		m.refusalReported = true
	}
	return true, c.takeActions()
}
