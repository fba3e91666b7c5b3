//go:build cuda && linux && cgo

/* Every symbol of libcuda that the program refers to is defined here, as a jump
 * through driver_slots, which load.c fills. They are hidden: a shared library that
 * is opened later must find the driver's own, not these. */
	.text
#define X(name) \
	.globl name ; \
	.hidden name ; \
	.type name, @function ; \
	.p2align 4 ; \
name: ; \
	endbr64 ; \
	jmp *driver_slot_##name(%rip) ; \
	.size name, . - name ;
#include "symbols.h"
#undef X

	.section .data.rel,"aw",@progbits
	.p2align 3
	.globl driver_slots
	.hidden driver_slots
driver_slots:
#define X(name) driver_slot_##name: .quad driver_unopened ;
#include "symbols.h"
#undef X
	.section .note.GNU-stack,"",@progbits
