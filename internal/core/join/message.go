package join

import (
	"slices"
	"strconv"
	"strings"
)

// Message is a message for the channel.
type Message struct {
	Kind MessageKind
	List []Shown // for Send: the mechanisms that have answered or failed, in priority order
	Text string  // for Report: why there is no endpoint; for Await: what calls are waiting for
	Name string  // mechanism that Text is about, or "" for the whole channel
}

// MessageKind is the kind of a Message.
type MessageKind int

// These are the kinds of messages.
const (
	Nothing MessageKind = iota
	Await               // calls wait for a source; no update has been sent
	Report              // no mechanism has answered, and one or more have failed
	Send                // an update: at least one mechanism has answered
)

// Shown is a mechanism in a Message.
type Shown struct {
	ID               ID
	Name             string
	Failed           bool // the source failed before its first answer
	Answer           Answer
	LookAgain        bool // its source accepts re-resolution requests
	OutlierDetection string
	Trouble          string // the present problem, or ""
}

// Explained returns why no call can be made with an answer, and the present problem.
func (s *Shown) Explained(why string) string {
	if why == "" || s.Trouble == "" {
		return why
	}
	return s.Trouble + lastAnswer + why
}

// Next returns the next message for the channel, or Nothing. The shell calls it when no event is
// pending, so that simultaneous events become one message, and again until it returns Nothing.
// After each message, the shell calls Taken.
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

// next returns the kind of message that describes the state: Send, Report or Await.
func (c *Core) next(list []*mechanism) MessageKind {
	some, failed := false, false
	first := Failed // phase of the first mechanism that has not failed
	for _, m := range list {
		phase := m.phase
		if first == Failed {
			first = phase
		}
		some, failed = some || phase == Answered, failed || phase == Failed
	}
	switch {
	case c.sent: // an answer stays in use whatever happens
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

// whyNone returns, in one line, why each mechanism has no answer.
func whyNone(list []*mechanism) string {
	const most = 4 // more would not be readable
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

// awaited returns an Await message for the first mechanism whose source has said what it is waiting
// for, or no message.
func awaited(list []*mechanism) Message {
	for _, m := range list {
		if m.phase == Outstanding && m.overdue {
			return Message{Kind: Await, Name: m.Name, Text: m.unanswered()}
		}
	}
	return Message{}
}

// Taken is called after each message; taken is set if the channel accepted it. refused is set if
// the channel refused an update because of its endpoints. It is not set if the update contained a
// mechanism without usable addresses: this explains the refusal, and the mechanism's source knows
// of it. After a refusal, each source whose answer was in the update gets a re-resolution request,
// but no further one until the channel accepts an update. told is the mechanism whose source learns
// of the refusal in another way.
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
			continue // not in the update that was refused
		}
		if m.id != told && !m.told {
			c.ask(m)
		}
		m.told = true
	}
	return true, c.take()
}
