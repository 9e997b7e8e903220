// Go with everything that a checkpoint must carry: memory under a garbage collector, goroutines, timers, connections, files.
package main

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	mib  = 1024 * 1024
	port = 7000
	dir  = "/home/user/soak"
)

type soak struct {
	identity string
	memory   [][]byte
	table    map[int]string
	mapped   []byte
	appended *os.File
	deleted  *os.File
	near     net.Conn
	pings    chan chan string
	ticks    atomic.Int64

	lock     sync.Mutex
	mark     string
	problems []string
}

func random(size int) []byte {
	data := make([]byte, size)
	must(rand.Read(data))
	return data
}

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func (s *soak) problem(text string) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.problems = append(s.problems, text)
}

func start() *soak {
	s := &soak{identity: hex.EncodeToString(random(8)), table: map[int]string{}, pings: make(chan chan string)}
	for range 32 {
		s.memory = append(s.memory, random(mib))
	}
	for index := range 50_000 {
		s.table[index] = hex.EncodeToString(random(24))
	}
	s.makeFiles()
	listener := must(net.Listen("tcp", "127.0.0.1:0"))
	s.near = must(net.Dial("tcp", listener.Addr().String()))
	far := must(listener.Accept())
	go func() {
		_, err := io.Copy(far, far)
		s.problem(fmt.Sprint("the connection within the sandbox was closed: ", err))
	}()
	go s.tick()
	for range 4 {
		go churn()
	}
	// A thousand goroutines that a question passes through, one after the other.
	next := s.pings
	for range 1000 {
		from, to := next, make(chan chan string)
		go func() {
			for ping := range from {
				to <- ping
			}
		}()
		next = to
	}
	go func() {
		for ping := range next {
			ping <- "pong"
		}
	}()
	return s
}

func (s *soak) makeFiles() {
	must(0, os.MkdirAll(dir, 0o755))
	must(0, os.WriteFile(dir+"/random", random(8*mib), 0o644))
	must(0, os.WriteFile(dir+"/mapped", random(4*mib), 0o644))
	file := must(os.OpenFile(dir+"/mapped", os.O_RDWR, 0))
	s.mapped = must(syscall.Mmap(int(file.Fd()), 0, 4*mib, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED))
	copy(s.mapped, random(4*mib))
	s.appended = must(os.OpenFile(dir+"/appended", os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644))
	// Nobody can open this one again: it lives by its descriptor alone.
	s.deleted = must(os.Create(dir + "/deleted"))
	must(s.deleted.Write(random(mib)))
	must(0, os.Remove(dir+"/deleted"))
}

func (s *soak) tick() {
	before := time.Now()
	for range time.Tick(20 * time.Millisecond) {
		now := time.Now()
		if now.Sub(before) < 0 {
			s.problem(fmt.Sprintf("the monotonic clock went back from %v to %v", before, now))
		}
		before = now
		if _, err := fmt.Fprintf(s.appended, "%d\n", s.ticks.Load()); err != nil {
			s.problem(fmt.Sprint("the open file can't be appended to: ", err))
		}
		s.ticks.Add(1)
	}
}

func churn() {
	held := make([][]byte, 200)
	for number := 0; ; number++ {
		held[number%len(held)] = make([]byte, 16*1024)
		if number%200 == 0 {
			time.Sleep(5 * time.Millisecond)
		}
	}
}

func (s *soak) check() map[string]any {
	before := s.ticks.Load()
	s.ask()
	for deadline := time.Now().Add(10 * time.Second); s.ticks.Load() == before; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.problem("the timer stands still")
			break
		}
	}
	memory := sha256.New()
	for _, part := range s.memory {
		memory.Write(part)
	}
	for index := range 50_000 {
		memory.Write([]byte(s.table[index]))
	}
	memory.Write(s.mapped)
	files := sha256.New()
	for _, name := range []string{"random", "mapped"} {
		files.Write(must(os.ReadFile(dir + "/" + name)))
	}
	deleted := make([]byte, mib)
	must(s.deleted.ReadAt(deleted, 0))
	files.Write(deleted)
	lines := strings.Split(string(must(os.ReadFile(dir+"/appended"))), "\n")
	for index, line := range lines[:len(lines)-1] {
		if line != strconv.Itoa(index) {
			s.problem("the appended file is not what was appended")
			break
		}
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	return map[string]any{
		"identity": fmt.Sprint(s.identity, " ", os.Getpid()),
		"memory":   hex.EncodeToString(memory.Sum(nil)),
		"files":    hex.EncodeToString(files.Sum(nil)),
		"ticks":    s.ticks.Load(),
		"clockMs":  time.Now().UnixMilli(),
		"random":   hex.EncodeToString(random(16)),
		"mark":     s.mark,
		"problems": append([]string{}, s.problems...),
	}
}

func (s *soak) ask() {
	question, answer := []byte("are you there?"), make([]byte, 14)
	s.near.SetDeadline(time.Now().Add(10 * time.Second))
	must(s.near.Write(question))
	if _, err := io.ReadFull(s.near, answer); err != nil || !bytes.Equal(question, answer) {
		s.problem(fmt.Sprint("the connection within the sandbox lost bytes: ", err))
	}
	ping := make(chan string, 1)
	s.pings <- ping
	select {
	case <-ping:
	case <-time.After(10 * time.Second):
		s.problem("the goroutines do not pass on what they are given")
	}
}

func main() {
	s := start()
	http.HandleFunc("GET /check", func(response http.ResponseWriter, _ *http.Request) {
		json.NewEncoder(response).Encode(s.check())
	})
	http.HandleFunc("POST /mark", func(response http.ResponseWriter, request *http.Request) {
		body := must(io.ReadAll(request.Body))
		s.lock.Lock()
		s.mark = string(body)
		s.lock.Unlock()
		fmt.Fprint(response, "{}")
	})
	log.Fatal(http.ListenAndServe(fmt.Sprintf("127.0.0.1:%d", port), nil))
}
