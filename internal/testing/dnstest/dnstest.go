// Package dnstest has a DNS server for tests. It listens on loopback over UDP and TCP.
package dnstest

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"

	"golang.org/x/net/dns/dnsmessage"
)

type Server struct {
	udp     net.PacketConn
	tcp     net.Listener
	running sync.WaitGroup

	mu        sync.Mutex
	questions *sync.Cond
	answers   map[Question]Answer
	asked     map[Question]int
	open      map[net.Conn]bool
	silent    bool
}

type Question struct{ Name, Type string }

// Answer is the response to a question. The zero value says that the name doesn't exist.
type Answer struct {
	Records []string // e.g. "10.0.0.1", "10 3 443 a.example.com." or "CNAME b.example.com."
	// Code is the response code. If it's zero, it depends on whether the name exists, i.e. has
	// records of any type.
	Code dnsmessage.RCode
	// Truncated empties UDP responses and sets their truncation flag.
	Truncated bool
	Cut       bool
	Silent    bool
}

func Start() *Server {
	for {
		tcp, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			panic(err)
		}
		udp, err := net.ListenPacket("udp", tcp.Addr().String())
		if err != nil { // somebody else has that UDP port, so try another one
			_ = tcp.Close()
			continue
		}
		return start(udp, tcp)
	}
}

func StartAt(address string) (*Server, error) {
	tcp, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	udp, err := net.ListenPacket("udp", address)
	if err != nil {
		_ = tcp.Close()
		return nil, err
	}
	return start(udp, tcp), nil
}

func start(udp net.PacketConn, tcp net.Listener) *Server {
	s := &Server{udp: udp, tcp: tcp, answers: make(map[Question]Answer), asked: make(map[Question]int), open: make(map[net.Conn]bool)}
	s.questions = sync.NewCond(&s.mu)
	s.running.Go(s.serveUDP)
	s.running.Go(s.serveTCP)
	return s
}

func (s *Server) Stop() {
	_ = s.udp.Close()
	_ = s.tcp.Close()
	s.mu.Lock()
	for c := range s.open {
		_ = c.Close()
	}
	s.mu.Unlock()
	s.running.Wait()
}

func (s *Server) Address() string { return s.tcp.Addr().String() }

// Set sets the records of a name and type. If there are none, the name doesn't exist.
func (s *Server) Set(name, kind string, records ...string) {
	s.SetAnswer(name, kind, Answer{Records: records})
}

func (s *Server) SetAnswer(name, kind string, a Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers[Question{name, kind}] = a
}

// Hush makes the server ignore questions if silent is true, and answer again if it's false.
func (s *Server) Hush(silent bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.silent = silent
}

func (s *Server) Asked(name, kind string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[Question{name, kind}]
}

func (s *Server) Await(name, kind string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for until := s.asked[Question{name, kind}] + n; s.asked[Question{name, kind}] < until; {
		s.questions.Wait()
	}
}

func (s *Server) serveUDP() {
	buffer := make([]byte, 64<<10)
	for {
		n, from, err := s.udp.ReadFrom(buffer)
		if err != nil {
			return
		}
		if response := s.respond(buffer[:n], false); response != nil {
			_, _ = s.udp.WriteTo(response, from) // if the response gets lost, clients ask again
		}
	}
}

func (s *Server) serveTCP() {
	for {
		c, err := s.tcp.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.open[c] = true
		s.mu.Unlock()
		s.running.Go(func() {
			s.serveConn(c)
			_ = c.Close()
			s.mu.Lock()
			delete(s.open, c)
			s.mu.Unlock()
		})
	}
}

func (s *Server) serveConn(c net.Conn) {
	for {
		var length [2]byte
		if _, err := io.ReadFull(c, length[:]); err != nil {
			return
		}
		query := make([]byte, binary.BigEndian.Uint16(length[:]))
		if _, err := io.ReadFull(c, query); err != nil {
			return
		}
		response := s.respond(query, true)
		if response == nil {
			continue
		}
		if _, err := c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(response))), response...)); err != nil {
			return
		}
	}
}

func (s *Server) respond(query []byte, tcp bool) []byte {
	var m dnsmessage.Message
	if err := m.Unpack(query); err != nil || len(m.Questions) != 1 {
		return nil
	}
	q := m.Questions[0]
	question := Question{strings.TrimSuffix(q.Name.String(), "."), strings.TrimPrefix(q.Type.String(), "Type")}
	s.mu.Lock()
	s.asked[question]++
	s.questions.Broadcast()
	a, silent := s.answers[question], s.silent
	exists := a.Records != nil
	for other, b := range s.answers {
		exists = exists || other.Name == question.Name && b.Records != nil
	}
	s.mu.Unlock()
	if silent || a.Silent {
		return nil
	}
	response := dnsmessage.Message{Header: dnsmessage.Header{ID: m.ID, Response: true, RecursionAvailable: true, RCode: a.Code}, Questions: m.Questions}
	if !exists && a.Code == dnsmessage.RCodeSuccess {
		response.RCode = dnsmessage.RCodeNameError
	}
	if a.Cut && !tcp {
		a.Records = a.Records[:1]
	}
	for _, text := range a.Records {
		response.Answers = append(response.Answers, resource(q.Name, text))
	}
	return pack(response, a.Truncated && !tcp, tcp)
}

// pack leaves out the records if truncate is set or the response is too long for UDP.
func pack(response dnsmessage.Message, truncate, tcp bool) []byte {
	const datagram = 512
	packed, err := response.Pack()
	if err != nil {
		panic(err)
	}
	if !tcp && (truncate || len(packed) > datagram) {
		response.Truncated, response.Answers = true, nil
		return pack(response, false, true)
	}
	return packed
}

func resource(name dnsmessage.Name, text string) dnsmessage.Resource {
	r := dnsmessage.Resource{Header: dnsmessage.ResourceHeader{Name: name, Class: dnsmessage.ClassINET, TTL: 1}}
	if ip, err := netip.ParseAddr(text); err == nil {
		if ip.Is4() {
			r.Body = &dnsmessage.AResource{A: ip.As4()}
		} else {
			r.Body = &dnsmessage.AAAAResource{AAAA: ip.As16()}
		}
		return r
	}
	if to, ok := strings.CutPrefix(text, "CNAME "); ok {
		r.Body = &dnsmessage.CNAMEResource{CNAME: dnsmessage.MustNewName(to)}
		return r
	}
	srv := &dnsmessage.SRVResource{}
	var target string
	if _, err := fmt.Sscan(text, &srv.Priority, &srv.Weight, &srv.Port, &target); err != nil {
		panic(fmt.Sprintf("dnstest: record %q: %v", text, err))
	}
	srv.Target = dnsmessage.MustNewName(target)
	r.Body = srv
	return r
}
