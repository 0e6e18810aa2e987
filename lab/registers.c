/* Preloaded into the lab's machines. User-Mode Linux 6.1 has room for 2696 bytes of a process's vector
 * registers. A processor with AMX has more, and its kernel takes all of them or none (EFAULT). This sets
 * the rest as it was. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

long ptrace(enum __ptrace_request request, ...)
{
	static long (*next)(int, ...);
	static __thread char all[1 << 15];
	va_list list;
	va_start(list, request);
	void *pid = va_arg(list, void *), *address = va_arg(list, void *), *data = va_arg(list, void *);
	va_end(list);
	if (!next)
		next = (long (*)(int, ...))dlsym(RTLD_NEXT, "ptrace");
	if (request == PTRACE_SETREGSET && address == (void *)NT_X86_XSTATE) {
		struct iovec *given = data, whole = { all, sizeof all };
		if (next(PTRACE_GETREGSET, pid, address, &whole) == 0 && whole.iov_len > given->iov_len) {
			memcpy(all, given->iov_base, given->iov_len);
			return next(request, pid, address, &whole);
		}
	}
	return next(request, pid, address, data);
}
