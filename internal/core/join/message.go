package join

import (
	"slices"
	"strconv"
	"strings"
)

// Message is an update, an error or a notice for the channel.
type Message struct {
	Kind MessageKind
	List []Shown // for Send: the mechanisms that have answered or failed, in priority order
	Text string  // for Report: why there is no endpoint; for Await: what calls wait for
	Name string
}

// MessageKind says what the channel does with a Message.
type MessageKind int

// The kinds of messages.
const (
	Nothing MessageKind = iota
	Await               // calls wait for a source, and nothing has been sent yet
	Report              // no mechanism has answered, and at least one has failed: calls fail
	Send                // an update; at least one mechanism has answered
)

// Shown is a mechanism in a Message.
type Shown struct {
	ID               ID
	Name             string
	Failed           bool
	Answer           Answer
	LookAgain        bool
	OutlierDetection string
	Trouble          string
}

// Explained returns why, the reason why no call can succeed, followed by the source's present
// problem.
func (s *Shown) Explained(why string) string {
	if why == "" || s.Trouble == "" {
		return why
	}
	return s.Trouble + lastAnswer + why
}

// Next returns the next message for the channel, or Nothing. It must be called after each batch of
// events, so that simultaneous events become one message, and again until it returns Nothing. After
// each message, Taken must be called.
func (c *Core) Next() Message {
	if !c.changed || c.closed || c.starting > 0 {
		return Message{}
	}
	c.changed = false
	list := c.inUse()
	switch kind := c.next(list); kind {
	case Send:
		c.sent = true
		return Message{Kind: Send, List: shown(list)}
	case Report:
		c.awaiting = ""
		if len(list) == 1 && c.list[0].Name == "" {
			return Message{Kind: Report, Name: list[0].Name, Text: list[0].err}
		}
		return Message{Kind: Report, Text: whyNone(list)}
	default:
		m := awaited(list)
		if text := m.Name + ": " + m.Text; text != c.awaiting && m.Kind != Nothing {
			c.awaiting = text
			return m
		}
		return Message{}
	}
}

// next returns the kind of message that describes the present state. It never returns Nothing.
func (c *Core) next(list []*mechanism) MessageKind {
	some, failed := false, false
	first := Failed // the phase of the first mechanism that has not failed
	for _, m := range list {
		phase := m.phase
		if first == Failed {
			first = phase
		}
		some, failed = some || phase == Answered, failed || phase == Failed
	}
	switch {
	case c.sent: // answers stay in use, even if all sources fail
		return Send
	case first == Outstanding && c.waits[ForFirst] != over:
		return Await
	case some:
		return Send
	case failed:
		return Report
	}
	return Await
}

func shown(list []*mechanism) (shown []Shown) {
	for _, m := range list {
		s := Shown{ID: m.id, Name: m.Name, OutlierDetection: m.OutlierDetection, Answer: m.answer, LookAgain: m.hears.LookAgain, Trouble: m.complaint.Text}
		switch m.phase {
		case Outstanding:
			continue
		case Failed:
			s.Failed, s.Trouble = true, m.err
		}
		shown = append(shown, s)
	}
	return shown
}

func whyNone(list []*mechanism) string {
	const most = 4
	var causes []string
	for _, m := range list[:min(len(list), most)] {
		cause := m.err
		if cause == "" {
			cause = m.unanswered()
		}
		causes = append(causes, m.Name+": "+cause)
	}
	if more := len(list) - most; more > 0 {
		causes = append(causes, "and "+strconv.Itoa(more)+" more")
	}
	return "no part has an address: " + strings.Join(causes, "; ")
}

// awaited returns an Await message about the first mechanism whose first answer is overdue. A call
// whose deadline expires meanwhile gets its text as the error. If no mechanism is overdue, the
// message is empty.
func awaited(list []*mechanism) Message {
	for _, m := range list {
		if m.phase == Outstanding && m.overdue {
			return Message{Kind: Await, Name: m.Name, Text: m.unanswered()}
		}
	}
	return Message{}
}

// Taken is called after each message. taken reports whether the channel accepted it. After a
// refusal, it requests a re-resolution from each source whose answer was in the update, except from
// the source of the mechanism told, which learns of the refusal in another way. No source gets a
// second request before the channel has accepted an update.
//
// The result refused reports whether the channel refused endpoints that looked usable. It is false
// if the update contained a mechanism without usable addresses, because its source already knows
// the reason for the refusal.
func (c *Core) Taken(taken bool, told ID) (refused bool, actions []Action) {
	list := c.inUse()
	c.refused = false
	if c.closed {
		return false, nil
	}
	if taken {
		for _, m := range list {
			m.told = false
		}
		return false, nil
	}
	if slices.ContainsFunc(list, func(m *mechanism) bool { return m.phase == Failed || m.answer.Why != "" }) {
		return false, nil
	}
	c.refused = true
	for _, m := range list {
		if m.phase != Answered {
			continue // the refused update had no answer from this mechanism
		}
		if m.id != told && !m.told {
			c.ask(m)
		}
		m.told = true
	}
	return true, c.take()
}
