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
	Type    string `json:"type"`
	Object  object `json:"object"`
	problem error  // if set, the object is invalid, and the stream continues
	err     error  // if set, the stream has ended
}

// readEvents reads the events of a watch.
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

// stream reads JSON values. Each of them, with what precedes it, may have up to maxEvent bytes.
type stream struct {
	limited *io.LimitedReader
	*json.Decoder
}

func newStream(body io.Reader) *stream {
	limited := &io.LimitedReader{R: body, N: maxEvent}
	return &stream{limited, json.NewDecoder(limited)}
}

// next decodes the next value. If problem is set, the value is invalid. If err is set, no further
// value can be read. After a value that is too long, next skips the rest of the line. It describes
// a type mismatch in JSON's terms, because the names of Go types would not help a user.
func (s *stream) next(value any) (problem, err error) {
	err = s.Decode(value)
	isTooLong := s.limited.N <= 0
	s.limited.N = maxEvent
	typeErr, isTypeErr := errors.AsType[*json.UnmarshalTypeError](err)
	_, isSyntaxErr := errors.AsType[*json.SyntaxError](err)
	switch {
	case isTypeErr:
		field := typeErr.Field[strings.LastIndex(typeErr.Field, ".")+1:]
		return fmt.Errorf("it has a JSON %s for %s", typeErr.Value, cmp.Or(field, "it")), nil
	case isSyntaxErr:
		return nil, fmt.Errorf("the API server sends invalid JSON: %w", err)
	case err == nil || !isTooLong:
		return nil, err
	}
	remaining := bufio.NewReader(s.limited.R)
	for err = bufio.ErrBufferFull; errors.Is(err, bufio.ErrBufferFull); {
		_, err = remaining.ReadSlice('\n')
	}
	*s = *newStream(remaining)
	return fmt.Errorf("it has more than %d MiB", maxEvent>>20), err
}

// readList reads a list. It calls handle for each slice, and returns the version of the list.
func readList(body io.Reader, handle func(sl *slice, problem error)) (version string, err error) {
	s := newStream(io.LimitReader(body, maxList))
	if t, err := s.Token(); t != json.Delim('{') {
		return "", cmp.Or(err, errors.New("it is not an object"))
	}
	for s.More() {
		name, err := s.Token()
		if err != nil {
			return "", err
		}
		var metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		}
		var problem error
		switch name {
		case "metadata":
			problem, err = s.next(&metadata)
			version = metadata.ResourceVersion
		case "items":
			err = s.readItems(handle)
		default:
			_, err = s.next(new(json.RawMessage))
		}
		if err = cmp.Or(problem, err); err != nil {
			return "", err
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
	switch t, err := s.Token(); {
	case t == nil:
		return err
	case t != json.Delim('['):
		return errors.New("its items are not an array")
	}
	for s.More() {
		o := new(object)
		problem, err := s.next(o)
		if err != nil {
			return err
		}
		handle(o.slice(), problem)
	}
	_, err := s.Token()
	return err
}
