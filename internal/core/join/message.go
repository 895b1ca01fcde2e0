package join

import (
	"slices"
	"strconv"
	"strings"
)

// Message is something to tell the channel.
type Message struct {
	Kind MessageKind
	List []Shown // for Send: the mechanisms that have answered or failed, in priority order
	Text string  // for Report: why there is no endpoint. For Await: what calls wait for
	Name string  // of the mechanism that Text is about, "" for the channel
}

// MessageKind is what a Message tells.
type MessageKind int

// The kinds.
const (
	Nothing MessageKind = iota
	Await               // calls wait for a source, and nothing was sent; others may have answered
	Report              // no mechanism has answered yet
	Send                // the mechanisms, of which at least one has answered
)

// Shown is a mechanism in a Message.
type Shown struct {
	ID               ID
	Name             string
	Failed           bool // it has never answered
	Answer           Answer
	LookAgain        bool // its source can be asked to look again
	OutlierDetection string
	Trouble          string // what is wrong with it, "" for nothing
}

// Explained returns why no call can be made with an answer, and what went wrong since.
func (s *Shown) Explained(why string) string {
	if why == "" || s.Trouble == "" {
		return why
	}
	return s.Trouble + lastAnswer + why
}

// Next returns what to tell the channel, until it is Nothing. It is to be called when no event is
// left, so that what came together becomes one message. Taken is due after each.
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

// next decides between Send, Report and Await.
func (c *Core) next(list []*mechanism) MessageKind {
	some, failed := false, false
	first := Failed // of those that have not failed, the phase of the first
	for _, m := range list {
		phase := m.phase
		if first == Failed {
			first = phase
		}
		some, failed = some || phase == Answered, failed || phase == Failed
	}
	switch {
	case c.sent: // then some mechanism has answered, and its last answer is in use
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

// whyNone says in one line why none of several has an endpoint.
func whyNone(list []*mechanism) string {
	const most = 4 // causes that are worth reading
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

// awaited returns what calls wait for, Nothing where no source says so.
func awaited(list []*mechanism) Message {
	for _, m := range list {
		if m.phase == Outstanding && m.overdue {
			return Message{Kind: Await, Name: m.Name, Text: m.unanswered()}
		}
	}
	return Message{}
}

// Taken says whether the channel took what it was last sent. It reports whether a refusal is of
// the endpoints: where a mechanism without addresses explains it, only that one's source can
// help, and that knows already. The sources of the others are asked to look again, once until
// the channel takes something; not that of told, which hears of it in another way.
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
			continue // it was not in what was refused
		}
		if m.id != told && !m.told {
			c.ask(m)
		}
		m.told = true
	}
	return true, c.take()
}
