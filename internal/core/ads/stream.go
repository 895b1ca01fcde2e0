package ads

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
)

func (s *Subscriptions) Opened() Actions {
	var a Actions
	s.phase, s.anyResponse, s.nonce, s.rejectedVersion = streamOpen, false, "", nil
	if len(s.subscribed) == 0 {
		return a
	}
	a.Send = s.request()
	for _, name := range a.Send.Names {
		if w := s.subscribed[name]; w.good == nil && w.timer.ID == 0 {
			s.startTimer(&a, name, false)
		}
	}
	return a
}

// Closed is called when the stream has ended. Resources with watchers stay in use. We drop the rest
// because nobody will send us updates for them anymore.
//
// err says why the stream ended without a response. It's nil if we renewed the stream ourselves.
// Once there was a response, the end of a stream isn't a failure, since servers end streams to
// rebalance their clients (gRFC A57). We don't restart the timers in that case: a server that keeps
// ending streams early could otherwise delay them forever.
func (s *Subscriptions) Closed(err error) Actions {
	var a Actions
	failed := s.phase != streamAnswered && err != nil
	s.phase = streamDown
	if failed {
		s.failure = err
	}
	for _, name := range s.Names() {
		watched := s.subscribed[name].watchers > 0
		if failed || !watched {
			s.stopTimer(&a, name)
		}
		if !watched {
			delete(s.subscribed, name)
		} else if failed {
			s.fail(&a, name, err)
		}
	}
	return a
}

// OtherResponse is called when a response for some other type of resource arrives. It proves that
// the stream works, so resources that only failed because the last stream did are pending again.
func (s *Subscriptions) OtherResponse() {
	s.anyResponse = true
	s.allResponseCount++
	if s.failure == nil {
		return
	}
	for _, w := range s.subscribed {
		if errors.Is(w.err, s.failure) {
			w.err = nil
		}
	}
	s.failure = nil
}

// RestartTimers restarts the timers that expired before the server responded on this stream. If
// they expire a second time, we report their resources as missing.
func (s *Subscriptions) RestartTimers() Actions {
	return s.restartTimers(false)
}

// ServerResponds is called when a server that we had reported as silent sends a response. It
// restarts the timers that expired with ErrSilent. Call it before OtherResponse and Received.
func (s *Subscriptions) ServerResponds() Actions {
	return s.restartTimers(true)
}

func (s *Subscriptions) restartTimers(onlySilent bool) Actions {
	var a Actions
	if s.phase == streamDown {
		return a // they'll start when the next stream opens
	}
	for _, name := range s.Names() {
		w := s.subscribed[name]
		isSilent, isWaiting := errors.Is(w.err, ErrSilent), w.timer.ID != 0
		if w.good != nil || onlySilent && !isSilent {
			continue
		}
		if isSilent || errors.Is(w.err, ErrMissing) && !isWaiting {
			w.err = nil
		}
		if !isWaiting {
			s.startTimer(&a, name, false)
		}
	}
	return a
}

var errDuplicate = errors.New("the response contains it more than once")

// Received handles a response. Deliver contains the good resources that have changed, even if
// others in the same response are invalid, and Send is the ACK or NACK. We ignore resources that we
// didn't subscribe to. If two resources have the same name, we reject both. A response need not be
// complete, so anything we asked for and didn't get is still pending.
//
// Some servers send the same response again as soon as they get a NACK. If we also replied at once,
// we'd keep each other busy forever, so Later is set if we've already rejected this version. We
// still have to send that NACK at some point, because many servers won't send anything else until
// they get it.
func (s *Subscriptions) Received(version, nonce string, resources []Resource) Actions {
	var a Actions
	var rejections reasons
	s.OtherResponse()
	s.phase, s.nonce = streamAnswered, nonce
	s.responseCount++
	occurrences := make(map[string]int, len(resources))
	for _, r := range resources {
		occurrences[r.Name]++
	}
	for i, r := range resources {
		w := s.subscribed[r.Name]
		switch {
		case r.Err != nil && r.Name == "":
			rejections.add(fmt.Sprintf("resource %d", i), r.Err)
		case w == nil || occurrences[r.Name] == 0: // not subscribed, or a duplicate we've already rejected
		case occurrences[r.Name] > 1:
			occurrences[r.Name] = 0
			s.rejectResource(&a, &rejections, r.Name, errDuplicate)
		case r.Err != nil:
			s.rejectResource(&a, &rejections, r.Name, r.Err)
		default:
			s.stopTimer(&a, r.Name)
			r.Version = version
			w.accept(&a, r)
		}
	}
	if rejections.count == 0 {
		s.version = version
	}
	if len(s.subscribed) > 0 {
		a.Send = s.request()
		a.Send.Reject = rejections.String()
	}
	if rejections.count > 0 {
		a.Later = s.rejectedVersion != nil && *s.rejectedVersion == version
		s.rejectedVersion = &version
	}
	a.Renew = s.exceedsLimits()
	return a
}

func (s *Subscriptions) rejectResource(a *Actions, bad *reasons, name string, err error) {
	bad.add(name, err)
	s.stopTimer(a, name)
	s.fail(a, name, Rejected{err})
	if s.subscribed[name].good != nil {
		a.Kept = append(a.Kept, Failure{name, Rejected{err}})
	}
}

func (w *subscription) accept(a *Actions, r Resource) {
	if w.good != nil && bytes.Equal(w.good.Body, r.Body) {
		return
	}
	if w.watchers > 0 {
		a.Deliver = append(a.Deliver, r)
	}
	r.Parsed = nil
	w.good, w.err = &r, nil
}

// Limits for the text of a NACK: at most maxReasons resources, and maxReason bytes for each.
const (
	maxReasons = 20
	maxReason  = 500
)

type reasons struct {
	count int
	texts []string
}

func (r *reasons) add(what string, err error) {
	r.count++
	if r.count > maxReasons {
		return
	}
	text := what + ": " + err.Error()
	if len(text) > maxReason {
		text = strings.ToValidUTF8(text[:maxReason], "") + "…"
	}
	r.texts = append(r.texts, text)
}

func (r *reasons) String() string {
	if r.count > len(r.texts) {
		return fmt.Sprintf("%s; and %d more", strings.Join(r.texts, "; "), r.count-len(r.texts))
	}
	return strings.Join(r.texts, "; ")
}
