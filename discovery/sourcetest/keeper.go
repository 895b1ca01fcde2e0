package sourcetest

import (
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/understudy-lb/understudy/discovery"
)

type checkingReceiver struct {
	recorder
	t         failer
	updateErr error
	onReport  func()

	answersMu   sync.Mutex
	answers     []answerCopy
	hasSentList bool
	failures    []string
	minuteStart time.Time
	refusals    int // answers refused in the current minute
}

// answerCopy has an answer and a copy that we made when it was sent. If they differ, the source has
// modified the answer since.
type answerCopy struct{ answer, copy discovery.Answer }

func (k *checkingReceiver) listen() *discovery.Receiver {
	inner := k.receiver()
	return inner.With(discovery.Hooks{
		Update: func(a discovery.Answer) error { return k.update(inner, a) },
		Mechanisms: func(mechanisms []discovery.Mechanism) {
			k.answersMu.Lock()
			k.hasSentList = true
			k.answersMu.Unlock()
			inner.Mechanisms(mechanisms)
			k.notify()
		},
		Fail: func(err error) {
			k.fail(err)
			inner.Fail(err)
			k.notify()
		},
		Confirm: func() {
			if !k.answered() {
				k.t.Errorf("Confirm was called before the first answer")
			}
			inner.Confirm()
		},
		Unconfirmed: func(err error, since time.Time) {
			if since.After(time.Now()) {
				k.t.Errorf("Unconfirmed was called with a time %v in the future", time.Until(since))
			}
			inner.Unconfirmed(err, since)
		},
	})
}

func (k *checkingReceiver) notify() {
	if k.onReport != nil {
		k.onReport()
	}
}

func (k *checkingReceiver) update(inner *discovery.Receiver, a discovery.Answer) error {
	if err := inner.Update(a); err != nil {
		k.t.Errorf("an answer breaks the rules: %v", err)
		return err
	}
	k.answersMu.Lock()
	if len(k.answers) < 1000 {
		k.answers = append(k.answers, answerCopy{a, clone(a)})
	}
	k.answersMu.Unlock()
	k.notify()
	if k.updateErr != nil && k.repeatsTooOften() {
		time.Sleep(closedTimeout) // without a pause, the fake clock would never advance
	}
	return k.updateErr
}

// repeatsTooOften counts a refused answer. It returns true once there have been too many of them
// within a minute.
func (k *checkingReceiver) repeatsTooOften() bool {
	const maxRefusals = 100
	k.answersMu.Lock()
	defer k.answersMu.Unlock()
	if time.Since(k.minuteStart) > time.Minute {
		k.minuteStart, k.refusals = time.Now(), 0
	}
	if k.refusals++; k.refusals == maxRefusals {
		k.t.Errorf("%d answers within a minute although the channel refuses them, want a pause between them", maxRefusals)
	}
	return k.refusals >= maxRefusals
}

func (k *checkingReceiver) fail(err error) {
	text := err.Error()
	if text == "" || strings.ContainsAny(text, "\r\n") {
		k.t.Errorf("a failure has the text %q, want one line", text)
	}
	k.answersMu.Lock()
	defer k.answersMu.Unlock()
	for _, previous := range k.failures {
		if previous != text && withoutNumbers(previous) == withoutNumbers(text) {
			k.t.Errorf("a failure has the text %q, and an earlier one %q; want the same text for the same failure, without IDs, ports and times", text, previous)
		}
	}
	if !slices.Contains(k.failures, text) && len(k.failures) < 100 {
		k.failures = append(k.failures, text)
	}
}

var numbers = regexp.MustCompile(`[0-9]+(\.[0-9]+)?`)

func withoutNumbers(text string) string { return numbers.ReplaceAllString(text, "#") }

// failedBefore reports whether the source has already failed with the same text, without ever
// answering.
func (k *checkingReceiver) failedBefore(err error) bool {
	k.answersMu.Lock()
	defer k.answersMu.Unlock()
	return len(k.answers) == 0 && !k.hasSentList && slices.Contains(k.failures, err.Error())
}

func (k *checkingReceiver) answered() bool {
	k.answersMu.Lock()
	defer k.answersMu.Unlock()
	return len(k.answers) > 0 || k.hasSentList
}

func (k *checkingReceiver) check(t failer) {
	t.Helper()
	k.answersMu.Lock()
	defer k.answersMu.Unlock()
	for _, g := range k.answers {
		if !reflect.DeepEqual(g.answer.Priorities, g.copy.Priorities) || !slices.Equal(g.answer.Notes, g.copy.Notes) || !slices.Equal(g.answer.Drops, g.copy.Drops) {
			t.Errorf("an answer was changed after it was handed over, from %v to %v", addresses(&g.copy), addresses(&g.answer))
		}
	}
	known := make(map[string]discovery.Answer)
	for _, g := range k.answers {
		first, found := known[g.copy.Identity]
		if found && g.copy.Identity != "" && !reflect.DeepEqual(first.Priorities, g.copy.Priorities) {
			t.Errorf("two answers have the identity %q: %v and %v", g.copy.Identity, addresses(&first), addresses(&g.copy))
			return
		}
		known[g.copy.Identity] = g.copy
	}
}

func clone(a discovery.Answer) discovery.Answer {
	a.Priorities = slices.Clone(a.Priorities)
	for i := range a.Priorities {
		p := &a.Priorities[i]
		p.Localities = slices.Clone(p.Localities)
		for j := range p.Localities {
			l := &p.Localities[j]
			l.Endpoints = slices.Clone(l.Endpoints)
			for n := range l.Endpoints {
				e := &l.Endpoints[n]
				e.Addresses, e.ForZones, e.ForNodes = slices.Clone(e.Addresses), slices.Clone(e.ForZones), slices.Clone(e.ForNodes)
			}
		}
	}
	a.Notes, a.Drops = slices.Clone(a.Notes), slices.Clone(a.Drops)
	return a
}
