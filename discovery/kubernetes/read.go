package kubernetes

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

const (
	maxEvent = 8 << 20 // bytes of one event, or of one slice in a list; etcd's limit is 1.5 MiB
	maxList  = 256 << 20
)

type event struct {
	Type   string `json:"type"`
	Object struct {
		slice
		status
	} `json:"object"`
	problem error // the object is invalid for this reason; the stream continues
	err     error // the stream has ended for this reason; no event follows
}

// events reads the events of a watch. It skips an event that is too long, and reports that as a
// problem.
func events(ctx context.Context, body io.Reader) <-chan *event {
	to := make(chan *event)
	go func() {
		s := newStream(body)
		for {
			e := new(event)
			e.problem, e.err = s.next(e)
			select {
			case to <- e:
			case <-ctx.Done():
				return
			}
			if e.err != nil {
				return
			}
		}
	}()
	return to
}

type stream struct {
	bounded *io.LimitedReader
	*json.Decoder
}

func newStream(body io.Reader) *stream {
	s := &stream{bounded: &io.LimitedReader{R: body}}
	s.Decoder = json.NewDecoder(s.bounded)
	return s
}

// next decodes the next value. problem is the reason why the value is invalid. If err is set, no
// further value can be read. After a value that is too long, next skips the rest of the line.
func (s *stream) next(into any) (problem, err error) {
	s.bounded.N = maxEvent
	err = s.Decode(into)
	switch {
	case err == nil:
		return nil, nil
	case s.bounded.N <= 0:
		rest := bufio.NewReader(s.bounded.R)
		for more := true; more; {
			_, e := rest.ReadSlice('\n')
			if more = errors.Is(e, bufio.ErrBufferFull); e != nil && !more {
				return nil, e
			}
		}
		*s = *newStream(rest)
		return fmt.Errorf("it has more than %d MiB", maxEvent>>20), nil
	case broken(err):
		if _, syntax := errors.AsType[*json.SyntaxError](err); syntax {
			err = fmt.Errorf("the API server sends invalid JSON: %w", err)
		}
		return nil, err
	}
	return inWords(err), nil
}

// inWords describes a type mismatch in JSON's terms, because the names of Go types would not help a
// user.
func inWords(err error) error {
	if typed, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("it has a JSON %s for %s", typed.Value, cmp.Or(typed.Field[strings.LastIndex(typed.Field, ".")+1:], "it"))
	}
	return err
}

// broken reports whether the stream cannot be read further after err.
func broken(err error) bool {
	_, syntax := errors.AsType[*json.SyntaxError](err)
	_, typed := errors.AsType[*json.UnmarshalTypeError](err)
	_, ours := errors.AsType[*shapeError](err)
	return syntax || !typed && !ours
}

type shapeError struct{ given string }

func (e *shapeError) Error() string { return e.given + " given, want an array" }

// readList reads a list. It calls take for each slice, and returns the version of the list.
func readList(body io.Reader, take func(sl *slice, problem error)) (version string, err error) {
	s := newStream(io.LimitReader(body, maxList))
	s.bounded.N = maxEvent
	switch t, err := s.Token(); {
	case err != nil:
		return "", fmt.Errorf("it is not an object: %w", err)
	case t != json.Delim('{'):
		return "", errors.New("it is not an object")
	}
	for s.More() {
		s.bounded.N = maxEvent
		name, err := s.Token()
		if err != nil {
			return "", err
		}
		switch name {
		case "metadata":
			var m struct {
				ResourceVersion string `json:"resourceVersion"`
			}
			if err := s.Decode(&m); err != nil {
				return "", err
			}
			version = m.ResourceVersion
		case "items":
			if err := s.items(take); err != nil {
				return "", err
			}
		default:
			var skipped json.RawMessage
			if err := s.Decode(&skipped); err != nil {
				return "", err
			}
		}
	}
	if _, err := s.Token(); err != nil {
		return "", err
	}
	if version == "" {
		return "", errors.New("it has no resourceVersion")
	}
	return version, nil
}

// items reads the EndpointSlices of a list. The list may be null.
func (s *stream) items(take func(sl *slice, problem error)) error {
	t, err := s.Token()
	switch {
	case err != nil:
		return err
	case t == nil:
		return nil
	case t != json.Delim('['):
		return &shapeError{"items: " + fmt.Sprint(t)}
	}
	for s.More() {
		s.bounded.N = maxEvent
		sl := new(slice)
		err := s.Decode(sl)
		if err != nil && broken(err) {
			return err
		}
		take(sl, inWords(err))
	}
	_, err = s.Token()
	return err
}
