package reconciletest

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// read records a read of the cache, which no fault of the network can strike.
func (p *Process) read(ctx context.Context, r *Request, do func() error) error {
	if p.isDead() {
		return p.refuse()
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	r.Behind = p.cache.behind(r.Kind)
	r.Err = do()
	p.run.mu.Lock()
	defer p.run.mu.Unlock()
	p.run.record(p, r)
	return r.Err
}

// send records a request or an effect, and lets a fault strike it if that is planned. Do carries it
// out; lost says that nobody will see the answer.
func (p *Process) send(ctx context.Context, r *Request, do func(lost bool) error) error {
	run := p.run
	run.mu.Lock()
	defer run.mu.Unlock()
	if p.dead {
		return p.refuse()
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	r.made = run.made[madeKey{r.Kind, r.Object}]
	run.record(p, r)
	fault := run.strikes(p, r)
	switch fault {
	case "":
		r.Err = run.carryOut(r, false, do)
		return r.Err
	case CrashBefore:
		p.die()
		r.Err = errDead
	case CrashAfter:
		r.Err = run.carryOut(r, true, do)
		p.die()
		return errDead
	case CrashDowntime:
		r.Err = run.carryOut(r, true, do)
		p.die()
		run.away = true
		return errDead
	case CrashUnseen, CrashDowntimeUnseen:
		before := run.server.Revision()
		r.Err = run.carryOut(r, true, do)
		run.past = p.cache.past(r.Kind, before)
		p.die()
		run.away = fault == CrashDowntimeUnseen
		return errDead
	case ConcurrentAction:
		if !run.hurry() {
			r.Fault = ""
		}
		r.Err = run.carryOut(r, false, do)
	case Timeout:
		if r.Err = run.carryOut(r, true, do); r.Err == nil {
			r.Err = lostAnswer(r, context.DeadlineExceeded)
		}
	case Conflict:
		run.touch(r)
		r.Err = run.carryOut(r, false, do)
	case TooManyRequests:
		if r.http {
			r.Err = httpError(http.StatusTooManyRequests)
			break
		}
		r.Err = apierrors.NewTooManyRequests("the server has asked for the client to wait", 1)
	case InternalError:
		if r.http {
			r.Err = httpError(http.StatusServiceUnavailable)
			break
		}
		r.Err = apierrors.NewInternalError(fmt.Errorf("etcdserver: leader changed"))
	case ConnectionRefused:
		r.Err = lostAnswer(r, syscall.ECONNREFUSED)
	case AlreadyExists:
		if !strings.HasSuffix(r.Object.Name, "*") {
			r.Err = run.carryOut(r, true, do)
		}
		if r.Err == nil {
			r.Err = apierrors.NewAlreadyExists(resourceOf(r), r.Object.Name)
		}
	case NotFound:
		run.remove(r)
		r.Err = run.carryOut(r, false, do)
	case LeaderChange:
		if !run.depose(p) {
			r.Err = errDead
			return r.Err
		}
		r.Err = run.carryOut(r, false, do)
	default:
		r.Err = fmt.Errorf("reconciletest: fault %q is not one of a request", fault)
	}
	return r.Err
}

// refuse answers a process that is dead. A goroutine of it that tries again and again ends here.
func (p *Process) refuse() error {
	if p.refused.Add(1) > maxRequests {
		runtime.Goexit()
	}
	return errDead
}

// lostAnswer is what an HTTP client says.
func lostAnswer(r *Request, err error) error {
	if r.External != "" {
		return fmt.Errorf("%s: %w", r.External, err)
	}
	return &url.Error{Op: strings.ToUpper(r.Verb[:1]) + r.Verb[1:], URL: "https://api.example.com/" + strings.ToLower(r.Kind.Kind), Err: err}
}

func resourceOf(r *Request) schema.GroupResource {
	return schema.GroupResource{Group: r.Kind.Group, Resource: strings.ToLower(r.Kind.Kind) + "s"}
}
