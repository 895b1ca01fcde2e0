package feed

import (
	"maps"
	"time"
)

// Name is what a source knows of one of several names that it looks up.
type Name struct {
	Addresses []string  // those that it had when it was looked up last
	Until     time.Time // until when that was so, zero where it still is
}

// Names are the names of a source whose answer is made of several. They are kept with the
// answer: where the channel was idle, and a name cannot be looked up when it wakes up, the
// name alone has what it had, while the others have what they have now.
type Names map[string]Name

// Remember says of which names the next answer is made. The receiver, which may be any, does
// not change them, and the caller may not.
func Remember(receiver any, names Names) {
	if in, ok := receiver.(interface{ remember(Names) }); ok {
		in.remember(names)
	}
}

// Remembered returns the names of the kept answer, each with the time until which its
// addresses were confirmed. Those that were not within the time for which answers are kept
// are left out: a use of them does not confirm them. Where the source takes the place of one
// before it, they are all those of the answer in use.
func Remembered(receiver any) Names {
	if in, ok := receiver.(interface{ remembered() Names }); ok {
		return in.remembered()
	}
	return nil
}

func (in *Inlet) remember(names Names) {
	in.feed.mu.Lock()
	defer in.feed.mu.Unlock()
	in.slot.names = names
}

// named returns what an answer says, with its names.
func (in *Inlet) named(s said) said {
	in.feed.mu.Lock()
	defer in.feed.mu.Unlock()
	s.names = in.slot.names
	return s
}

func (in *Inlet) remembered() Names {
	now := time.Now()
	in.feed.mu.Lock()
	inherited, holds, names := in.slot.phase == answered, in.slot.holds(), in.slot.said.names
	in.feed.mu.Unlock()
	s, age, there := kept.get(in.slot.Key, now)
	switch {
	case !inherited:
		return s.names.since(now.Add(-keptFor), now.Add(-age))
	case holds:
		age = 0
	case !there:
		age = keptFor // or more
	}
	return names.since(time.Time{}, now.Add(-age))
}

// since returns the names that were confirmed at the given time or later, where those that
// say nothing of it were confirmed until the other.
func (n Names) since(earliest, otherwise time.Time) Names {
	n = maps.Clone(n)
	for name, known := range n {
		if known.Until.IsZero() {
			known.Until = otherwise
		}
		if n[name] = known; known.Until.Before(earliest) {
			delete(n, name)
		}
	}
	return n
}

// orLater returns n, where each name has what other says of it if that was so until later. What
// says nothing of it is so still in n, and in other was so at the given time.
func (n Names) orLater(other Names, confirmed time.Time) Names {
	n = maps.Clone(n)
	for name, known := range other.since(time.Time{}, confirmed) {
		if mine := n[name].Until; !mine.IsZero() && mine.Before(known.Until) {
			n[name] = known
		}
	}
	return n
}

// size returns about how many bytes n takes.
func (n Names) size() (bytes int) {
	const name, address = 100, 20
	for of, known := range n {
		bytes += name + len(of)
		for _, a := range known.Addresses {
			bytes += address + len(a)
		}
	}
	return bytes
}
