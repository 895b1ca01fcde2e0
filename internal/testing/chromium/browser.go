// Package chromium controls a headless Chromium, for tests and screenshots of pages. It speaks the
// DevTools protocol over a pipe and needs only the standard library.
package chromium

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
)

var names = []string{"chromium", "chromium-browser", "google-chrome", "headless_shell"}

type Browser struct {
	command *exec.Cmd
	dir     string
	out     *os.File // for commands to Chromium
	in      *os.File // for messages from Chromium

	mu      sync.Mutex
	last    int
	waiting map[int]chan<- message
	pages   map[string]*Page
	ended   error
}

type message struct {
	ID      int             `json:"id,omitempty"`
	Session string          `json:"sessionId,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  any             `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *struct {
		Message string `json:"message"`
	} `json:"error,omitempty"`
}

func Start() (*Browser, error) {
	path, err := find()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "chromium-")
	if err != nil {
		return nil, err
	}
	args := []string{
		"--headless", "--remote-debugging-pipe", "--user-data-dir=" + dir, "--no-first-run", "--disable-gpu",
		"--disable-background-networking", "--disable-component-update", "--disable-extensions", "--disable-dev-shm-usage",
		"--hide-scrollbars", "--force-color-profile=srgb", "--disable-lcd-text", "--lang=en",
	}
	if os.Geteuid() == 0 {
		args = append(args, "--no-sandbox") // Chromium's sandbox does not work as root
	}
	b := &Browser{
		command: exec.Command(path, append(args, "about:blank")...), dir: dir,
		waiting: make(map[int]chan<- message), pages: make(map[string]*Page),
	}
	if err := b.start(); err != nil {
		os.RemoveAll(dir) //nolint:errcheck // leaving a temporary directory behind does no harm
		return nil, fmt.Errorf("start %s: %w", path, err)
	}
	return b, nil
}

func find() (string, error) {
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("no browser found, want one of %q in PATH", names)
}

// start starts the process. It reads commands from file descriptor 3 and writes messages to file
// descriptor 4.
func (b *Browser) start() error {
	commands, out, err := os.Pipe()
	if err != nil {
		return err
	}
	in, answers, err := os.Pipe()
	if err != nil {
		return errors.Join(err, commands.Close(), out.Close())
	}
	b.command.ExtraFiles = []*os.File{commands, answers}
	b.command.Env = append(os.Environ(), "HOME="+b.dir) // Chromium keeps all of its files there
	ownGroup(b.command)
	b.out, b.in = out, in
	err = b.command.Start()
	_ = errors.Join(commands.Close(), answers.Close())
	if err != nil {
		return errors.Join(err, in.Close(), out.Close())
	}
	go b.read(in)
	return nil
}

func (b *Browser) Close() error {
	_ = b.call(context.Background(), "", "Browser.close", nil, nil) // fails if the browser has already ended
	_ = b.out.Close()
	killGroup(b.command)
	_ = b.command.Wait()
	_ = b.in.Close()
	return os.RemoveAll(b.dir)
}

// read handles the messages of the browser. Each message ends with a zero byte.
func (b *Browser) read(in io.Reader) {
	reader := bufio.NewReader(in)
	for {
		data, err := reader.ReadBytes(0)
		if err == nil {
			err = b.hear(bytes.TrimRight(data, "\x00"))
		}
		if err != nil {
			b.end(err)
			return
		}
	}
}

func (b *Browser) hear(data []byte) error {
	var params json.RawMessage
	m := message{Params: &params}
	if err := json.Unmarshal(data, &m); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if m.ID == 0 {
		if p := b.pages[m.Session]; p != nil {
			p.hear(m.Method, params)
		}
		return nil
	}
	if answer, ok := b.waiting[m.ID]; ok {
		delete(b.waiting, m.ID)
		answer <- m
	}
	return nil
}

func (b *Browser) end(why error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = why
	for id, answer := range b.waiting {
		delete(b.waiting, id)
		close(answer)
	}
}

func (b *Browser) call(ctx context.Context, session, method string, params, result any) error {
	answer := make(chan message, 1)
	if err := b.send(session, method, params, answer); err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	select {
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", method, context.Cause(ctx))
	case m, ok := <-answer:
		switch {
		case !ok:
			return fmt.Errorf("%s: the browser has ended", method)
		case m.Error != nil:
			return fmt.Errorf("%s: %s", method, m.Error.Message)
		case result == nil:
			return nil
		}
		return json.Unmarshal(m.Result, result)
	}
}

func (b *Browser) send(session, method string, params any, answer chan<- message) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended != nil {
		return fmt.Errorf("the browser has ended: %w", b.ended)
	}
	b.last++
	data, err := json.Marshal(message{ID: b.last, Session: session, Method: method, Params: params})
	if err != nil {
		return err
	}
	b.waiting[b.last] = answer
	_, err = b.out.Write(append(data, 0))
	return err
}
