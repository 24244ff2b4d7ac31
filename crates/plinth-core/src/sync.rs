//! Locks that a panic elsewhere does not break.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// The guard of a mutex, also after a thread panicked while it held it.
///
/// Only for state that is consistent between any two statements that change it: a panic may have come between them.
pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits until a condition variable is notified: what [`lock`] is to a mutex.
pub fn wait<'a, T>(condition: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    condition.wait(guard).unwrap_or_else(PoisonError::into_inner)
}

/// The shared guard of a lock: what [`lock`] is to a mutex.
pub fn read<T: ?Sized>(shared: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    shared.read().unwrap_or_else(PoisonError::into_inner)
}

/// The exclusive guard of a lock: what [`lock`] is to a mutex.
pub fn write<T: ?Sized>(shared: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    shared.write().unwrap_or_else(PoisonError::into_inner)
}
