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
	problem error // if set, the object is invalid, and the stream continues
	err     error // if set, the stream has ended
}

// readEvents reads the events of a watch. An event that is too long is skipped and reported as a
// problem.
func readEvents(ctx context.Context, body io.Reader) <-chan *event {
	ch := make(chan *event)
	go func() {
		s := newStream(body)
		for {
			e := new(event)
			e.problem, e.err = s.next(e)
			select {
			case ch <- e:
			case <-ctx.Done():
				return
			}
			if e.err != nil {
				return
			}
		}
	}()
	return ch
}

type stream struct {
	limited *io.LimitedReader
	*json.Decoder
}

func newStream(body io.Reader) *stream {
	s := &stream{limited: &io.LimitedReader{R: body}}
	s.Decoder = json.NewDecoder(s.limited)
	return s
}

// next decodes the next value. If problem is set, the value is invalid. If err is set, no further
// value can be read. After a value that is too long, next skips the rest of the line.
func (s *stream) next(value any) (problem, err error) {
	s.limited.N = maxEvent
	err = s.Decode(value)
	switch {
	case err == nil:
		return nil, nil
	case s.limited.N <= 0:
		remaining := bufio.NewReader(s.limited.R)
		for more := true; more; {
			_, e := remaining.ReadSlice('\n')
			if more = errors.Is(e, bufio.ErrBufferFull); e != nil && !more {
				return nil, e
			}
		}
		*s = *newStream(remaining)
		return fmt.Errorf("it has more than %d MiB", maxEvent>>20), nil
	case isFatal(err):
		if _, isSyntaxErr := errors.AsType[*json.SyntaxError](err); isSyntaxErr {
			err = fmt.Errorf("the API server sends invalid JSON: %w", err)
		}
		return nil, err
	}
	return describeTypeError(err), nil
}

// describeTypeError describes a type mismatch in JSON's terms, because the names of Go types would
// not help a user.
func describeTypeError(err error) error {
	if typeErr, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("it has a JSON %s for %s", typeErr.Value, cmp.Or(typeErr.Field[strings.LastIndex(typeErr.Field, ".")+1:], "it"))
	}
	return err
}

// isFatal reports whether no further value can be read from the stream after err.
func isFatal(err error) bool {
	_, isSyntaxErr := errors.AsType[*json.SyntaxError](err)
	_, isTypeErr := errors.AsType[*json.UnmarshalTypeError](err)
	_, isShapeErr := errors.AsType[*notArrayError](err)
	return isSyntaxErr || !isTypeErr && !isShapeErr
}

type notArrayError struct{ got string }

func (e *notArrayError) Error() string { return e.got + " given, want an array" }

// readList reads a list. It calls handle for each slice, and returns the version of the list.
func readList(body io.Reader, handle func(sl *slice, problem error)) (version string, err error) {
	s := newStream(io.LimitReader(body, maxList))
	s.limited.N = maxEvent
	switch t, err := s.Token(); {
	case err != nil:
		return "", fmt.Errorf("it is not an object: %w", err)
	case t != json.Delim('{'):
		return "", errors.New("it is not an object")
	}
	for s.More() {
		s.limited.N = maxEvent
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
			if err := s.readItems(handle); err != nil {
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

// readItems reads the EndpointSlices of a list, which may be null.
func (s *stream) readItems(handle func(sl *slice, problem error)) error {
	t, err := s.Token()
	switch {
	case err != nil:
		return err
	case t == nil:
		return nil
	case t != json.Delim('['):
		return &notArrayError{"items: " + fmt.Sprint(t)}
	}
	for s.More() {
		s.limited.N = maxEvent
		sl := new(slice)
		err := s.Decode(sl)
		if err != nil && isFatal(err) {
			return err
		}
		handle(sl, describeTypeError(err))
	}
	_, err = s.Token()
	return err
}
