package feed

import "google.golang.org/grpc/resolver"

// ResolveNow implements resolver.Resolver: the source is asked to look again. Where there
// are several nobody is. The channel asks whenever a connection fails or breaks, and does
// not say which: endpoints of a management server that are down for long would have DNS
// looked up all the time, the fault that gRFC A37 has ignore_reresolution_requests for. The
// policies ask at the same occasions, by their children: see resolveChild.
func (f *Feed) ResolveNow(resolver.ResolveNowOptions) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.words) == 1 {
		f.ask(0)
	}
}

// resolveChild asks the source whose child of the priority policy asks for it. It does
// nothing for a name that it does not know.
func (f *Feed) resolveChild(child string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if i, ok := f.children[child]; ok {
		f.ask(i)
	}
}

// ask has source i asked to look again: never on the caller's stack, because policies
// ask from within an update, and a source that answers at once would make the channel
// wait for itself. The lock is held.
func (f *Feed) ask(i int) {
	if f.closed || !f.started || !f.resolves(i) {
		return
	}
	f.words[i].ask = true
	if !f.asking {
		f.asking = true
		go f.askSources()
	}
}

// resolves returns whether source i can be asked to look again. The lock is held, and
// all sources are started.
func (f *Feed) resolves(i int) bool {
	_, ok := f.watches[i].(resolverNow)
	return ok
}

// askSources asks the sources, one after the other, until nobody is left to be asked.
// Where the feed is closed meanwhile it closes them, so that none is asked after it
// was closed.
func (f *Feed) askSources() {
	for {
		watch, closed := f.nextToAsk()
		switch {
		case closed:
			closeAll(f.watches)
			return
		case watch == nil:
			return
		}
		watch.ResolveNow()
	}
}

// nextToAsk returns a source that is to be asked, nil where there is none and
// askSources must return, or that the feed is closed.
func (f *Feed) nextToAsk() (watch resolverNow, closed bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, true
	}
	for i := range f.words {
		if f.words[i].ask {
			f.words[i].ask = false
			return f.watches[i].(resolverNow), false
		}
	}
	f.asking = false
	return nil, false
}
