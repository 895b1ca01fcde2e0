// Package chromium controls a headless Chromium for tests and screenshots of pages. It speaks the
// DevTools protocol over a pipe, so the standard library is all it needs.
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
	command       *exec.Cmd
	dir           string
	commandWriter *os.File
	messageReader *os.File

	mu      sync.Mutex
	lastID  int
	pending map[int]chan<- message
	pages   map[string]*Page
	readErr error
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
	path, err := findBrowser()
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
		args = append(args, "--no-sandbox") // Chromium's sandbox doesn't work as root
	}
	b := &Browser{
		command: exec.Command(path, append(args, "about:blank")...), dir: dir,
		pending: make(map[int]chan<- message), pages: make(map[string]*Page),
	}
	if err := b.start(); err != nil {
		os.RemoveAll(dir) //nolint:errcheck // a leftover temporary directory does no harm
		return nil, fmt.Errorf("start %s: %w", path, err)
	}
	return b, nil
}

func findBrowser() (string, error) {
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("no browser found, want one of %q in PATH", names)
}

func (b *Browser) start() error {
	commandReader, commandWriter, err := os.Pipe()
	if err != nil {
		return err
	}
	messageReader, messageWriter, err := os.Pipe()
	if err != nil {
		return errors.Join(err, commandReader.Close(), commandWriter.Close())
	}
	b.command.ExtraFiles = []*os.File{commandReader, messageWriter}
	b.command.Env = append(os.Environ(), "HOME="+b.dir) // makes Chromium put all of its files here
	setProcessGroup(b.command)
	b.commandWriter, b.messageReader = commandWriter, messageReader
	err = b.command.Start()
	_ = errors.Join(commandReader.Close(), messageWriter.Close())
	if err != nil {
		return errors.Join(err, messageReader.Close(), commandWriter.Close())
	}
	go b.read(messageReader)
	return nil
}

func (b *Browser) Close() error {
	_ = b.call(context.Background(), "", "Browser.close", nil, nil)
	_ = b.commandWriter.Close()
	killGroup(b.command)
	_ = b.command.Wait()
	_ = b.messageReader.Close()
	return os.RemoveAll(b.dir)
}

func (b *Browser) read(messages io.Reader) {
	reader := bufio.NewReader(messages)
	for {
		data, err := reader.ReadBytes(0)
		if err == nil {
			err = b.handle(bytes.TrimRight(data, "\x00"))
		}
		if err != nil {
			b.closeCalls(err)
			return
		}
	}
}

func (b *Browser) handle(data []byte) error {
	var params json.RawMessage
	m := message{Params: &params}
	if err := json.Unmarshal(data, &m); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if m.ID == 0 {
		if p := b.pages[m.Session]; p != nil {
			p.handle(m.Method, params)
		}
		return nil
	}
	if reply, ok := b.pending[m.ID]; ok {
		delete(b.pending, m.ID)
		reply <- m
	}
	return nil
}

func (b *Browser) closeCalls(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.readErr = err
	for id, reply := range b.pending {
		delete(b.pending, id)
		close(reply)
	}
}

func (b *Browser) call(ctx context.Context, session, method string, params, result any) error {
	reply := make(chan message, 1)
	if err := b.send(session, method, params, reply); err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	select {
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", method, context.Cause(ctx))
	case m, ok := <-reply:
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

func (b *Browser) send(session, method string, params any, reply chan<- message) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.readErr != nil {
		return fmt.Errorf("the browser has ended: %w", b.readErr)
	}
	b.lastID++
	data, err := json.Marshal(message{ID: b.lastID, Session: session, Method: method, Params: params})
	if err != nil {
		return err
	}
	b.pending[b.lastID] = reply
	_, err = b.commandWriter.Write(append(data, 0))
	return err
}
