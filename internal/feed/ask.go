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
	if slots := f.inUse(); len(slots) == 1 {
		f.ask(slots[0])
	}
}

// resolveChild asks the source of a child of the priority policy. It ignores unknown
// names.
func (f *Feed) resolveChild(child string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s, ok := f.children[child]; ok {
		f.ask(s)
	}
}

// ask has a source asked to look again: never on the caller's stack, because policies
// ask from within an update, and a source that answers at once would make the channel
// wait for itself. The lock is held.
func (f *Feed) ask(s *slot) {
	if f.closed || !f.started || !s.resolves() {
		return
	}
	s.ask = true
	if !f.asking {
		f.asking = true
		go f.askSources()
	}
}

// askSources asks the sources, one after the other, until nobody is left to be asked.
// It closes those that are to be closed meanwhile, all of them where the feed is, so that
// none is asked after it was closed.
func (f *Feed) askSources() {
	for {
		watch, retired := f.nextToAsk()
		closeAll(retired)
		if watch == nil {
			return
		}
		watch.ResolveNow()
	}
}

// nextToAsk returns a source that is to be asked, nil where there is none and
// askSources must return, and sources that are to be closed.
func (f *Feed) nextToAsk() (watch resolverNow, retired []Watch) {
	f.mu.Lock()
	defer f.mu.Unlock()
	retired, f.retired = f.retired, nil
	if f.closed {
		f.asking = false
		return nil, append(retired, f.open()...)
	}
	for _, s := range f.all() {
		if s.ask && s.resolves() {
			s.ask = false
			return s.watch.(resolverNow), retired
		}
	}
	f.asking = false
	return nil, retired
}
