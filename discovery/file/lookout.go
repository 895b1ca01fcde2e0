package file

import (
	"sync"

	"github.com/understudy-lb/understudy/internal/filewatch"
)

// lookout tells all channels that use a file when it may have changed. There is one a
// file, however many they are: a system has few notifiers to give (Linux gives a user
// 128), and to look at a file twice a second for each of 1,000 channels costs a process
// almost a twentieth of a core.
type lookout struct {
	of    watched
	users int           // guarded by lookouts.mu
	ready chan struct{} // closed once the file is watched
	done  chan struct{} // closed once nobody uses it

	mu   sync.Mutex
	news chan struct{} // closed, and replaced, when the file may have changed
}

// watched is what is watched, and how.
type watched struct {
	path    string
	options filewatch.Options
}

// lookouts are those that are used.
var lookouts = struct {
	mu  sync.Mutex
	all map[watched]*lookout
}{all: make(map[watched]*lookout)}

// join returns the lookout for a file. The caller calls leave.
func join(of watched) *lookout {
	lookouts.mu.Lock()
	defer lookouts.mu.Unlock()
	l := lookouts.all[of]
	if l == nil {
		l = &lookout{of: of, ready: make(chan struct{}), done: make(chan struct{}), news: make(chan struct{})}
		lookouts.all[of] = l
		go l.run()
	}
	l.users++
	return l
}

func (l *lookout) leave() {
	lookouts.mu.Lock()
	defer lookouts.mu.Unlock()
	if l.users--; l.users == 0 {
		delete(lookouts.all, l.of)
		close(l.done)
	}
}

func (l *lookout) run() {
	w := newWatcher(l.of.path, l.of.options)
	defer w.close()
	close(l.ready)
	for w.wait(l.done) {
		l.mu.Lock()
		close(l.news)
		l.news = make(chan struct{})
		l.mu.Unlock()
	}
}

// next returns what is closed when the file may have changed from now on. Whoever reads
// the file calls it before that, so that no change is missed in between.
func (l *lookout) next() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.news
}
