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

type keeper struct {
	record
	t       failer
	refusal error
	inside  func()

	guard    sync.Mutex
	answers  []given
	listed   bool
	failures []string
	minute   time.Time // start of the minute to which many refers
	many     int       // number of refused answers in that minute
}

// given is an answer from a source, and a copy that was made when it was sent. If they differ
// later, the source has modified the answer.
type given struct{ answer, copy discovery.Answer }

func (k *keeper) listen() *discovery.Receiver {
	to := k.receiver()
	return to.With(discovery.Hooks{
		Update: func(a discovery.Answer) error { return k.judge(to, a) },
		Parts: func(parts []discovery.Mechanism) {
			k.guard.Lock()
			k.listed = true
			k.guard.Unlock()
			to.Parts(parts)
			k.call()
		},
		Fail: func(err error) {
			k.fail(err)
			to.Fail(err)
			k.call()
		},
		Confirm: func() {
			if !k.answered() {
				k.t.Errorf("Confirm is called before there was an answer")
			}
			to.Confirm()
		},
		Unconfirmed: func(err error, since time.Time) {
			if since.After(time.Now()) {
				k.t.Errorf("Unconfirmed says that the answer was confirmed until %v from now", time.Until(since))
			}
			to.Unconfirmed(err, since)
		},
	})
}

func (k *keeper) call() {
	if k.inside != nil {
		k.inside()
	}
}

func (k *keeper) judge(to *discovery.Receiver, a discovery.Answer) error {
	if err := to.Update(a); err != nil {
		k.t.Errorf("an answer breaks the rules: %v", err)
		return err
	}
	k.guard.Lock()
	if len(k.answers) < 1000 {
		k.answers = append(k.answers, given{a, clone(a)})
	}
	k.guard.Unlock()
	k.call()
	if k.refusal != nil && k.repeatsTooOften() {
		time.Sleep(quiet) // a source that never pauses would otherwise stop the fake clock
	}
	return k.refusal
}

// repeatsTooOften counts a refused answer, and reports whether there are too many per minute.
func (k *keeper) repeatsTooOften() bool {
	const most = 100
	k.guard.Lock()
	defer k.guard.Unlock()
	if time.Since(k.minute) > time.Minute {
		k.minute, k.many = time.Now(), 0
	}
	if k.many++; k.many == most {
		k.t.Errorf("%d answers within a minute although the channel refuses them, want a pause between them", most)
	}
	return k.many >= most
}

func (k *keeper) fail(err error) {
	text := err.Error()
	if text == "" || strings.ContainsAny(text, "\r\n") {
		k.t.Errorf("a failure has the text %q, want one line", text)
	}
	k.guard.Lock()
	defer k.guard.Unlock()
	for _, before := range k.failures {
		if before != text && shape(before) == shape(text) {
			k.t.Errorf("a failure has the text %q, and an earlier one %q; want the same text for the same failure, without IDs, ports and times", text, before)
		}
	}
	if !slices.Contains(k.failures, text) && len(k.failures) < 100 {
		k.failures = append(k.failures, text)
	}
}

var numbers = regexp.MustCompile(`[0-9]+(\.[0-9]+)?`)

// shape returns text with all numbers replaced, so that texts can be compared.
func shape(text string) string { return numbers.ReplaceAllString(text, "#") }

// failedBefore reports whether the source, which has not answered yet, has already failed with the
// same text.
func (k *keeper) failedBefore(err error) bool {
	k.guard.Lock()
	defer k.guard.Unlock()
	return len(k.answers) == 0 && !k.listed && slices.Contains(k.failures, err.Error())
}

func (k *keeper) answered() bool {
	k.guard.Lock()
	defer k.guard.Unlock()
	return len(k.answers) > 0 || k.listed
}

func (k *keeper) check(t failer) {
	t.Helper()
	k.guard.Lock()
	defer k.guard.Unlock()
	for _, g := range k.answers {
		if !reflect.DeepEqual(g.answer.Priorities, g.copy.Priorities) || !slices.Equal(g.answer.Notes, g.copy.Notes) || !slices.Equal(g.answer.Drops, g.copy.Drops) {
			t.Errorf("an answer was changed after it was handed over, from %v to %v", addresses(&g.copy), addresses(&g.answer))
		}
	}
	known := make(map[string]discovery.Answer)
	for _, g := range k.answers {
		first, there := known[g.copy.Identity]
		if there && g.copy.Identity != "" && !reflect.DeepEqual(first.Priorities, g.copy.Priorities) {
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
