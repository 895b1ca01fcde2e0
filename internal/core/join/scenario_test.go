package join

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
)

// TestScenarios runs the scenarios in testdata. Each of them follows a comment that describes it.
// Each line of the input is an event. In the output, the actions and the messages for the channel
// follow each event:
//
//	mechanisms a b             the channel has these mechanisms
//	kept a X 10m               answer X is stored for a, and was confirmed 10 minutes ago
//	kept a b=S c=T 10m         a list is stored for a; b has source S, and c has source T
//	started a [asks] [heeds]   a's source is started, and accepts re-resolution (asks) or reports
//	                           of failing endpoints (heeds)
//	not-started a WHY
//	answered a X [WHY]         WHY is the reason why no call can succeed with answer X
//	failed a WHY
//	replaced a b=S,P,O c=T     a answered with a list; b has source S, preference P and outlier
//	                           detection O, and c has source T
//	confirmed a
//	doubted a 10m WHY          a's answer was last confirmed 10 minutes ago; "-" instead of 10m:
//	                           confirmed events confirm it; "doubted a" ends the doubt
//	rejected a WHY             a's source rejected an update
//	trying a TEXT
//	look-again                 the channel requests a re-resolution
//	endpoints-fail a [ignored]
//	refuses [a]                the channel refuses the next update; a is notified in another way
//	closes                     the channel closes while it receives the next update
//	pass 10s                   time passes, and timers fire
//	look                       the status of the mechanisms
//	closed
func TestScenarios(t *testing.T) {
	files := 0
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		files++
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s := newScenario()
			for line := range strings.Lines(d.Input) {
				s.printf("%s", strings.TrimSpace(line))
				s.runEvent(strings.Fields(line))
			}
			return s.transcript.String()
		})
	})
	if files < 5 {
		t.Errorf("found %d files of scenarios", files)
	}
}

type stage struct {
	core            *Core
	now             time.Time
	names           map[ID]string
	kept            map[string]Kept
	refuseNext      bool
	closeDuringNext bool
	notified        string
	transcript      strings.Builder
	seen            []string
}

func newScenario() *stage {
	return &stage{now: time.Unix(0, 0), names: make(map[ID]string), kept: make(map[string]Kept)}
}

func (s *stage) printf(format string, args ...any) {
	fmt.Fprintf(&s.transcript, format+"\n", args...)
}

func (s *stage) id(name string) ID {
	for id, n := range s.names {
		if n == name {
			return id
		}
	}
	return 0
}

func mechanismsOf(words []string) (list []Mechanism) {
	for _, word := range words {
		name, rest, _ := strings.Cut(word, "=")
		source, rest, _ := strings.Cut(rest, ",")
		m := Mechanism{Name: name}
		m.Prefer, m.OutlierDetection, _ = strings.Cut(rest, ",")
		if source != "" {
			m.Source = source
		}
		list = append(list, m)
	}
	return list
}

func (s *stage) runEvent(words []string) {
	var id ID
	args := words[1:]
	if len(args) > 0 {
		id = s.id(args[0])
	}
	text := strings.Join(words[min(2, len(words)):], " ")
	c, now := s.core, s.now
	switch words[0] {
	case "mechanisms":
		var actions []Action
		s.core, actions = New(now, Config{Patience: Patience, Kept: s.stored}, mechanismsOf(args))
		s.execute(actions)
	case "kept":
		age, _ := time.ParseDuration(args[len(args)-1])
		k := Kept{Confirmed: now.Add(-age)}
		if strings.Contains(args[1], "=") {
			k.List = mechanismsOf(args[1 : len(args)-1])
		} else {
			k.Answer = Answer{Content: args[1]}
		}
		s.kept[args[0]] = k
	case "started":
		s.execute(c.Started(now, id, Hears{ResolveNow: slices.Contains(args, "asks"), EndpointsFailed: slices.Contains(args, "heeds")}))
	case "not-started":
		s.execute(append(c.Failed(now, id, text), c.Started(now, id, Hears{})...))
	case "answered":
		s.execute(c.Answered(now, id, Answer{Content: args[1], Why: strings.Join(args[2:], " ")}))
	case "failed":
		s.execute(c.Failed(now, id, text))
	case "replaced":
		s.execute(c.Replaced(now, id, mechanismsOf(args[1:])))
	case "confirmed":
		s.execute(c.Confirmed(now, id))
	case "doubted":
		if text == "" {
			s.execute(c.Doubted(now, id, "", time.Time{}))
			return
		}
		var confirmed time.Time
		if age, err := time.ParseDuration(args[1]); err == nil {
			confirmed = now.Add(-age)
		}
		s.execute(c.Doubted(now, id, strings.Join(args[2:], " "), confirmed))
	case "rejected":
		c.Rejected(now, id, text)
	case "trying":
		s.execute(c.Trying(now, id, text))
	case "look-again":
		s.execute(c.ResolveNow())
	case "endpoints-fail":
		s.execute(c.ResolveNowFor(id, text == "ignored"))
	case "refuses":
		s.refuseNext, s.notified = true, strings.Join(args, "")
	case "closes":
		s.closeDuringNext = true
	case "pass":
		s.pass(args[0])
	case "look":
		s.printStatus()
	case "closed":
		s.execute(c.Closed(now))
	default:
		s.printf("unknown event %q", words[0])
	}
}

func (s *stage) stored(id ID) (Kept, bool) {
	k, isStored := s.kept[strings.Split(s.names[id], "'")[0]]
	return k, isStored
}

func (s *stage) pass(text string) {
	d, err := time.ParseDuration(text)
	if err != nil {
		s.printf("%v", err)
	}
	end := s.now.Add(d)
	for {
		due := s.core.Wake()
		if due.IsZero() || due.After(end) {
			break
		}
		s.now = due
		s.execute(s.core.Tick(s.now))
	}
	s.now = end
}

var kindNames = map[Kind]string{Stop: "stop", CallResolveNow: "ask", CallEndpointsFailed: "tell that endpoints fail", Warn: "warn", Say: "log", Show: "show"}

func (s *stage) execute(actions []Action) {
	for _, a := range actions {
		switch name := s.names[a.ID]; a.Kind {
		case Start:
			name = cmp.Or(a.Name, "unnamed")
			for n := 2; slices.Contains(s.seen, name); n++ {
				name = fmt.Sprintf("%s'%d", a.Name, n)
			}
			s.seen = append(s.seen, name)
			s.names[a.ID] = name
			s.printf("  start %s", name)
		case Keep:
			s.printf("  keep %s %s", name, contents(a.Answer, a.List))
			s.kept[strings.Split(name, "'")[0]] = a.Kept
		case Confirm:
			s.printf("  confirm %s%s, %v ago%s", name, withAnswer(a.Answer), s.now.Sub(a.Confirmed), map[bool]string{true: " and from now on"}[a.Current])
			if k, isStored := s.kept[strings.Split(name, "'")[0]]; isStored {
				k.Confirmed = a.Confirmed
				s.kept[strings.Split(name, "'")[0]] = k
			}
		case ShowRecovered:
			s.printf("  show %s: recovered after %v", name, a.After)
		case Warn, Say, Show:
			s.printf("  %s %s: %s", kindNames[a.Kind], name, a.Text)
		default:
			s.printf("  %s %s", kindNames[a.Kind], name)
		}
	}
	for m := s.core.Next(); m.Kind != Nothing; m = s.core.Next() {
		s.deliver(m)
	}
}

func (s *stage) deliver(m Message) {
	switch m.Kind {
	case Await:
		s.printf("  calls wait for %s: %s", m.Name, m.Text)
	case Report:
		s.printf("  report %s%s", strings.TrimPrefix(m.Name+": ", ": "), m.Text)
	case Send:
		var list []string
		for _, m := range s.core.shown() {
			text := strings.TrimRight(s.names[m.ID]+"="+strings.Join([]string{contents(m.Answer, nil), m.Prefer, m.OutlierDetection}, ","), ",")
			switch {
			case m.Phase == Failed:
				text = s.names[m.ID] + " failed (" + m.Failure.Text + ")"
			case m.Answer.Why != "":
				text += " (" + m.Explained(m.Answer.Why) + ")"
			}
			list = append(list, text)
		}
		s.printf("  send %s", strings.Join(list, ", "))
	}
	accepted := !s.refuseNext
	s.refuseNext = false
	if s.closeDuringNext {
		s.closeDuringNext = false
		s.execute(s.core.Closed(s.now))
	}
	refused, actions := s.core.Delivered(accepted, s.id(s.notified))
	if refused {
		s.printf("  the channel refuses that")
	}
	s.execute(actions)
}

func withAnswer(a Answer) string {
	if a.Content == nil {
		return ""
	}
	return "=" + contents(a, nil)
}

func contents(a Answer, list []Mechanism) string {
	if list == nil {
		return fmt.Sprint(a.Content)
	}
	var names []string
	for _, p := range list {
		names = append(names, p.Name)
	}
	return "[" + strings.Join(names, " ") + "]"
}

func (s *stage) printStatus() {
	for _, m := range s.core.Statuses() {
		text := m.Phase.String()
		if m.Trying != "" {
			text += ", " + m.Trying
		}
		trouble := m.Trouble()
		if trouble.Text != "" {
			text += fmt.Sprintf("; %s since %v", trouble.Text, s.now.Sub(trouble.Since))
			if !trouble.Confirmed.IsZero() {
				text += fmt.Sprintf(", confirmed %v ago", s.now.Sub(trouble.Confirmed))
			}
		}
		if trouble.Text == "" && m.LastError != "" {
			text += fmt.Sprintf("; %s, %v ago", m.LastError, s.now.Sub(m.FailedAt))
		}
		s.printf("  %s: %s", s.names[m.ID], text)
	}
}
